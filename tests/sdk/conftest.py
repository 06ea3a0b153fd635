"""Fixtures of the SDK's tests."""

import inspect
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from aftercall.client import AsyncClient, Client
from aftercall.models import Execution
from tests.sdk.loopback import Loopback
from tests.sdk.scripted_chat_server import ScriptedChatServer


@pytest.fixture
def service() -> Iterator[Loopback]:
    """A real HTTP service on loopback that can be told to fail."""
    with Loopback() as service:
        yield service


@pytest.fixture
def chat() -> Iterator[ScriptedChatServer]:
    """A real server of the chat API, whose answers are given."""
    with ScriptedChatServer() as server:
        yield server


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Any]]:
    """Makes either client; what it gives calls a method by its name."""
    clients = []

    def made(url: str, **options: Any) -> Any:
        client = request.param(url, **options)
        clients.append(client)

        async def method(name: str, *args: Any, **options: Any) -> Any:
            answer = getattr(client, name)(*args, **options)
            return await answer if inspect.isawaitable(answer) else answer

        return method

    yield made
    for client in clients:
        if inspect.isawaitable(closing := client.close()):
            await closing


@pytest.fixture
def call(service: Loopback, connect: Callable[..., Any]) -> Any:
    """Calls a method of either client by its name."""
    return connect(service.url)


@pytest.fixture
def new_execution() -> Callable[..., Execution]:
    """Makes executions, each with an id of its own."""

    def make(**changes: Any) -> Execution:
        fields: dict[str, Any] = {
            "execution_id": str(uuid.uuid4()), "timestamp": "2026-02-20T14:30:00Z",
            "agent": "librarian", "server_name": "rag-server", "tool_name": "rag_query",
            "parameters": {"query": "reflection", "topK": 5}, "outcome": "success",
        }  # fmt: skip
        return Execution.model_validate(fields | changes)

    return make
