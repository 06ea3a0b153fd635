"""A log store that can be read and not written, as when its file system turned so."""

from typing import cast

import pytest

from mongo.sqlite.store import SqliteStore
from tests.service.running_service import RunningService, execution

pytestmark = pytest.mark.real


def make_writable(service: RunningService, *, writable: bool) -> None:
    """Have SQLite refuse every write, in its own words for such a file system, or take them."""
    store = cast("SqliteStore", service.context.store)
    # Past the writer: it begins each operation with what is refused.
    store._writer._connection.execute(f"PRAGMA query_only = {'OFF' if writable else 'ON'}").close()


def test_a_read_only_store_is_503_and_reading_goes_on(service: RunningService) -> None:
    """Nothing of the call is stored, the caller is told when to come back, and then it is taken."""
    stored, refused = execution(), execution()
    assert service.record(stored).status_code == 202
    make_writable(service, writable=False)
    try:
        refuses(service, refused)
        assert service.is_stored(stored)
        assert not service.is_stored(refused)
    finally:
        make_writable(service, writable=True)
    assert service.record(refused).status_code == 202
    assert service.is_stored(refused)


def refuses(service: RunningService, record: dict[str, object]) -> None:
    """503 with its own code, and when to come back."""
    answer = service.record(record)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "store_read_only"
    assert int(answer.headers["retry-after"]) > 0
