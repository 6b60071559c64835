"""Where the specs that come with the package are."""

from pathlib import Path
from typing import Final

from recollect.errors import ConfigError
from recollect.suggestions import nearest

# One spec per benchmark in each; other folders hold further specs of the same benchmarks.
_FOLDERS: Final = ("paper", "text")


def config_root() -> Path:
    """Return the folder of the specs, inside the package so that every installation has them."""
    return Path(__file__).parents[2] / "configs"


def config_names() -> tuple[str, ...]:
    """List the benchmarks that have a spec."""
    return tuple(sorted(_usual_specs()))


def _usual_specs() -> dict[str, Path]:
    return {
        path.stem: path for folder in _FOLDERS for path in (config_root() / folder).glob("*.toml")
    }


def config_path(benchmark: str) -> Path:
    """Return the spec of a benchmark.

    Raises:
        ConfigError: There is none of that name.
    """
    known = _usual_specs()
    if benchmark not in known:
        problem = f"is {benchmark!r}; {nearest(benchmark, sorted(known))}"
        raise ConfigError("the command", [("benchmark", problem)])
    return known[benchmark]
