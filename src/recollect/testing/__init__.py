"""Checks a user can run on parts of their own."""

from recollect.testing.streams import check_stream

__all__ = ["check_stream"]
