"""One service for all tests of a module, and a way to post to it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.hooks.desk_server import SCHEMA
from tests.service.running_service import RunningService, hashing_settings, running

Post = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that knows the desk's tool, as a gateway registers it."""
    with running(hashing_settings(tmp_path_factory.mktemp("hooks"))) as started:
        tool = {
            "namespace": "desk", "name": "lookup_ticket", "serverName": "desk",
            "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True},
        }  # fmt: skip
        assert started.client.put("/tools/desk.lookup_ticket", json=tool).status_code < 300
        writing = tool | {"name": "close_ticket", "annotations": {"readOnlyHint": False}}
        assert started.client.put("/tools/desk.close_ticket", json=writing).status_code < 300
        yield started


@pytest.fixture
def post(service: RunningService) -> Post:
    """Posts a payload of a client, and returns the answer."""

    def done(client: str, payload: object, query: str = "") -> dict[str, Any]:
        answer = service.client.post(f"/hooks/{client}{query}", json=payload)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return done
