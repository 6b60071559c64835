"""`--fresh`: what other code made is set aside, so that all of a table is made by the same."""

from collections.abc import Sequence

from recollect.experiments.records.record import Record
from recollect.experiments.records.store import Store
from recollect.experiments.running.machine import code
from recollect.experiments.specs.request import Request


def made_by_other_code(requests: Sequence[Request], store: Store) -> list[Request]:
    """Return the runs that are done, and were made by other code than today's.

    Raises:
        StoreError: A record is damaged.
    """
    done = [request for request in requests if store.is_done(request)]
    return [request for request in done if _is_other(store.record(request))]


def set_other_code_aside(requests: Sequence[Request], store: Store) -> int:
    """Move the records that other code than today's made out of the way, and count them.

    Raises:
        StoreError: A record is damaged, cannot be moved, or is packed together with others.
    """
    others = made_by_other_code(requests, store)
    for request in others:
        store.set_aside(request)
    return len(others)


def _is_other(record: Record | None) -> bool:
    return record is not None and record.versions.get("code") != code()
