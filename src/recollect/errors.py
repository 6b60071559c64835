"""Errors a caller would want to catch by name. Bad arguments raise ValueError or TypeError."""

from collections.abc import Sequence


class RecollectError(Exception):
    """Base of every error that is ours."""


class UnsupportedModuleError(RecollectError):
    """Per-example gradients of a layer cannot be measured exactly; the message says what to do."""


class NonFiniteError(RecollectError, ValueError):
    """An input, loss or gradient is NaN or infinite. Nothing was learnt and nothing was stored."""


class CheckpointError(RecollectError):
    """A checkpoint is truncated, altered, foreign or made by another kind of learner."""


class DataError(RecollectError):
    """A data set is missing, damaged or not what it says; the message says what to do next."""


class DigestError(DataError):
    """The bytes are not the ones the data set's makers published. Nothing was used."""


class DownloadError(DataError):
    """A file could not be fetched: no client, no network, or the server refused."""


class DiskSpaceError(DataError):
    """The disk has no room for what was asked. Nothing half-written is left in use."""


class UnsafeFileError(DataError):
    """An archive or pickle asks for more than data: refused before anything was run or written."""


class StreamError(RecollectError):
    """A stream was used in a way a single pass does not allow."""


class MissingExtraError(RecollectError, ImportError):
    """An optional dependency is not installed; the message gives the exact `pip install`."""


class ConfigError(RecollectError, ValueError):
    """A spec breaks rules. The message lists every problem with its TOML path.

    Args:
        source: Where the spec is from, for a person.
        problems: `(path, what is wrong and what would be right)`, all of them.
    """

    def __init__(self, source: str, problems: Sequence[tuple[str, str]]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = [f"  {path}: {message}" if path else f"  {message}" for path, message in problems]
        super().__init__("\n".join([f"{source} has {count}:", *lines]))

    def __reduce__(self) -> "tuple[type[ConfigError], tuple[str, tuple[tuple[str, str], ...]]]":
        return type(self), (self.source, self.problems)


class StoreError(RecollectError):
    """A store of records cannot be read or written; what it held before is as it was."""


class WorkerError(RecollectError):
    """A worker process could not start, so that nothing can be run."""
