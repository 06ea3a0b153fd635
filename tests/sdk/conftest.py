"""Fixtures of the SDK's tests."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aftercall.wire import Execution
from tests.sdk.loopback import Loopback


@pytest.fixture
def service() -> Iterator[Loopback]:
    """A real HTTP service on loopback that can be told to fail."""
    with Loopback() as service:
        yield service


@pytest.fixture
def new_execution() -> Callable[..., Execution]:
    """Makes executions, each with an id of its own."""

    def make(**changes: Any) -> Execution:
        fields: dict[str, Any] = {
            "execution_id": str(uuid.uuid4()),
            "timestamp": "2026-02-20T14:30:00Z",
            "agent": "librarian",
            "server_name": "rag-server",
            "tool_name": "rag_query",
            "parameters": {"query": "reflection", "topK": 5},
            "outcome": "success",
        }
        return Execution.model_validate(fields | changes)

    return make
