"""Who makes the runs of a command: what `--workers`, `--threads` and `--on` mean.

Imports nothing heavy: the command asks before it needs torch or dask.
"""

import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from recollect.errors import ConfigError, MissingExtraError
from recollect.experiments.running.machine import CHECKPOINT_SHARE

LOCAL_CLUSTER: Final = "dask"
_ADDRESS: Final = re.compile(r"(tcp|tls|ucx|ws|wss)://.+:\d+(/.*)?")


@dataclass(frozen=True)
class Workforce:
    """Who makes the runs of a command.

    Attributes:
        workers: Processes on this machine; a running cluster has its own number.
        threads: Torch threads of each. One is the most efficient, unless runs are fewer than cores.
        on: None for processes of this machine, "dask" for a local cluster, else the address of a
            dask scheduler, such as `tcp://10.0.0.1:8786`, or the file that it wrote.
        checkpoint_share: Share of the time that saving may take.
    """

    workers: int
    threads: int = 1
    on: str | None = None
    checkpoint_share: float = CHECKPOINT_SHARE


def check_on(on: str) -> None:
    """Refuse what names no cluster.

    Raises:
        ConfigError: It names none.
        MissingExtraError: It names one, and distributed is not installed.
    """
    is_address = _ADDRESS.fullmatch(on) is not None
    if not (on == LOCAL_CLUSTER or is_address or _is_of_a_scheduler(Path(on))):
        problem = (
            f"is {on!r}; write dask for a cluster on this machine, an address with its port such "
            "as tcp://10.0.0.1:8786, or the path of a file that `dask scheduler` wrote."
        )
        raise ConfigError("the command", [("on", problem)])
    if find_spec("distributed") is None:
        raise MissingExtraError(
            f"`on` is {on!r}, which needs the package `distributed`; install it with "
            "`pip install distributed`."
        )


def _is_of_a_scheduler(path: Path) -> bool:
    """Whether a file says where a scheduler is; of another, dask would wait for a minute."""
    try:
        return _ADDRESS.fullmatch(json.loads(path.read_bytes())["address"]) is not None
    except (OSError, ValueError, KeyError, TypeError):
        return False


def num_at_once(on: str | None, workers: int) -> int:
    """Return how many runs are made at the same time.

    Args:
        on: As in `Workforce`. A running cluster is asked how many threads it has.
        workers: Processes on this machine.

    Raises:
        ConfigError: `on` names no cluster.
        MissingExtraError: It names one, and distributed is not installed.
        WorkerError: No scheduler answers.
    """
    if on is None:
        return workers
    check_on(on)
    if on == LOCAL_CLUSTER:
        return workers
    from recollect.experiments.executors.connecting import connected

    client = connected(on)
    try:
        return max(1, sum(client.nthreads().values()))
    finally:
        client.close()
