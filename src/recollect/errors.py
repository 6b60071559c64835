"""Errors a caller would want to catch by name. Bad arguments raise ValueError or TypeError."""


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
