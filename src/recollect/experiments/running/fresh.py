"""`--fresh`: what other code made is set aside, so that all of a table is made by the same."""

from collections.abc import Sequence

from recollect.experiments.records.store import Store
from recollect.experiments.running.machine import code
from recollect.experiments.specs.request import Request


def set_other_code_aside(requests: Sequence[Request], store: Store) -> int:
    """Move the records that other code than today's made out of the way, and count them.

    Raises:
        StoreError: A record is damaged, cannot be moved, or is packed together with others.
    """
    count = 0
    for request in requests:
        if not store.is_done(request):
            continue
        record = store.record(request)
        if record is not None and record.versions.get("code") != code():
            store.set_aside(request)
            count += 1
    return count
