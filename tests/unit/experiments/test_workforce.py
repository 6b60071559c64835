from pathlib import Path

import pytest

from recollect.errors import ConfigError, MissingExtraError
from recollect.experiments.executors import workforce
from recollect.experiments.executors.workforce import check_on, num_at_once

WRITTEN = '{"type": "Scheduler", "address": "tcp://10.0.0.1:8786"}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.json"


@pytest.mark.parametrize(
    "on",
    ["dask", "tcp://10.0.0.1:8786", "tls://host.example:1", "tcp://[::1]:8786", "wss://a:443/ws"],
)
def test_a_cluster_is_named_by_a_word_or_an_address(on: str) -> None:
    check_on(on)


def test_a_cluster_is_named_by_the_file_that_its_scheduler_wrote(file: Path) -> None:
    file.write_text(WRITTEN)
    check_on(str(file))


@pytest.mark.parametrize(
    "on", ["", "dusk", "10.0.0.1:8786", "tcp://10.0.0.1", "tcp://:8786x", "http://a:1", "absent"]
)
def test_what_names_no_cluster_is_refused_before_anybody_is_asked(on: str) -> None:
    with pytest.raises(ConfigError, match=r"on: is '.*'; write dask .* tcp://10\.0\.0\.1:8786"):
        check_on(on)
    with pytest.raises(ConfigError):
        num_at_once(on, 2)


@pytest.mark.parametrize("content", ["{}", "[]", "seeds = 2", '{"address": 3}', '{"address": "a"}'])
def test_a_file_that_no_scheduler_wrote_is_refused(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(ConfigError, match="a file that `dask scheduler` wrote"):
        check_on(str(file))


def test_without_distributed_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workforce, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="`pip install distributed`"):
        check_on("dask")
    assert num_at_once(None, 3) == 3
