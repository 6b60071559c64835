"""Where the specs that come with the package are."""

from pathlib import Path

from recollect.errors import ConfigError
from recollect.suggestions import nearest


def config_root() -> Path:
    """Return the folder of the specs, inside the package so that every installation has them."""
    return Path(__file__).parents[2] / "configs"


def config_names() -> tuple[str, ...]:
    """List the benchmarks that have a spec."""
    return tuple(sorted(path.stem for path in (config_root() / "paper").glob("*.toml")))


def config_path(benchmark: str) -> Path:
    """Return the spec of a benchmark.

    Raises:
        ConfigError: There is none of that name.
    """
    known = config_names()
    if benchmark not in known:
        problem = f"is {benchmark!r}; {nearest(benchmark, known)}"
        raise ConfigError("the command", [("benchmark", problem)])
    return config_root() / "paper" / f"{benchmark}.toml"
