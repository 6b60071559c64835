import shlex
from pathlib import Path

from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec


def test_all_cells_of_one_seed_come_before_the_next_seed(small_spec: Path) -> None:
    asked = requests(cells(load_spec(small_spec), methods=["er", "van"]), range(2))
    assert [(r.seed, r.cell.method) for r in asked] == [
        (0, "er"),
        (0, "van"),
        (1, "er"),
        (1, "van"),
    ]


def test_a_request_comes_back_from_its_json(small_spec: Path) -> None:
    (request,) = requests(cells(load_spec(small_spec), methods=["gss"]), [3])
    assert Request.from_json(request.to_json()) == request
    assert "\n" not in request.to_json()


def test_the_command_names_the_spec_the_seed_and_every_override(small_spec: Path) -> None:
    overrides = ["optimizer.lr=0.5", "stream.data='mnist embedded'"]
    (request,) = requests(
        cells(load_spec(small_spec), methods=["er"]),
        [3],
        spec=str(small_spec),
        overrides=overrides,
        threads=2,
    )
    words = shlex.split(request.command)
    assert words[:5] == ["recollect", "run", "mnist-split", "--spec", str(small_spec)]
    assert words[5:] == [
        *["--method", "er", "--seeds", "3:4", "--memory", "20", "--protocol", "paper"],
        *["--threads", "2", "--set", overrides[0], "--set", overrides[1]],
    ]
