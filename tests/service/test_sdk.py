"""The SDK against a true service: clients, recorder, and the same errors on both sides."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall import (
    Client,
    Execution,
    ExecutionError,
    FailedCall,
    InvalidRequestError,
    NotFoundError,
    Recorder,
    TooLargeError,
    ToolSpec,
)
from aftercall.process import bind
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    hashing_settings,
    running,
)


def an_execution(**fields: object) -> Execution:
    return Execution.model_validate(execution(**fields))


def a_failed_call(tool: str, message: str = "Invalid parameter: topK must be <= 10") -> FailedCall:
    return FailedCall(
        agent="a",
        tool_name=tool,
        parameters={"query": "x", "topK": 50},
        error=ExecutionError(message=message),
    )


def test_every_method_of_the_client_works(service: RunningService) -> None:
    """One method per endpoint, each against the endpoint."""
    tool = f"sdk_{uuid4().hex[:8]}"
    with Client(service.url) as client:
        assert client.healthy()
        assert client.ready()
        one = an_execution(toolName=tool)
        assert client.record(one).accepted == 1
        assert client.record([one, an_execution(toolName=tool)]).duplicates == 1
        assert client.get_execution(one.execution_id) == one
        eventually(lambda: client.status().pending_indexing == 0)
        answer = client.suggest(a_failed_call(tool))
        assert answer.suggestions[0].corrected_parameters == {"query": "x", "topK": 10}
        suggestion_id = answer.suggestions[0].suggestion_id
        client.report_outcome(suggestion_id, outcome="success", execution_id=str(uuid4()))
        assert client.similar(tool, server_name="rag-server").executions
        spec = ToolSpec(name=tool, input_schema={"type": "object"})
        put = client.put_tool(f"server/{tool}", spec)
        assert client.get_tool(f"server/{tool}") == put
        assert put in client.list_tools()
        client.delete_tool(f"server/{tool}")


def test_similar_calls_of_one_agent_and_failures_of_one_signature(service: RunningService) -> None:
    """Others are left out, however near; a signature is of failures, whatever else is asked for."""
    tool = f"sdk_{uuid4().hex[:8]}"
    failures = [
        {"outcome": "failure", "result": None, "error": {"message": f"no {what} of that name"}}
        for what in ("file", "page")
    ]
    with Client(service.url) as client:
        calls = [
            an_execution(toolName=tool, agent=agent, **fields)
            for agent in ("ada", "bob")
            for fields in ({}, *failures)
        ]
        assert client.record(calls).accepted == len(calls)
        eventually(lambda: client.status().pending_indexing == 0)
        asked = client.suggest(a_failed_call(tool, "no page of that name"))

        def found(**filters: Any) -> set[tuple[str, str | None]]:
            answer = client.similar(tool, server_name="rag-server", **filters).executions
            told = [each.execution for each in answer]
            return {(each.agent, each.error and each.error.message) for each in told}

        page = "no page of that name"
        assert found(agent="ada") == {("ada", None)}
        assert found(signature=asked.pattern.signature) == {("ada", page), ("bob", page)}
        assert found(signature=asked.pattern.signature, agent="bob") == {("bob", page)}
        assert found(signature="another") == found(agent="eve") == set()


def test_errors_become_the_exceptions_of_their_status(service: RunningService) -> None:
    """With the service's code and message."""
    with Client(service.url) as client:
        with pytest.raises(NotFoundError, match="no execution of that id"):
            client.get_execution(str(uuid4()))
        with pytest.raises(InvalidRequestError, match="UUID"):
            client.get_execution("e-1")
        with pytest.raises(TooLargeError, match="1,000"):
            client.record([an_execution() for _ in range(1001)])
        with pytest.raises(NotFoundError):
            client.report_outcome(str(uuid4()), outcome="success", execution_id=str(uuid4()))


def test_a_conflict_is_named_in_the_receipt(service: RunningService) -> None:
    """The client sends lists, in which a conflict is a rejection and no exception."""
    one = an_execution()
    with Client(service.url) as client:
        client.record(one)
        receipt = client.record(one.model_copy(update={"agent": "somebody else"}))
        assert [entry.index for entry in receipt.rejected] == [0]


def test_the_recorder_spools_while_the_service_is_away(tmp_path: Path) -> None:
    """And delivers when one is there again."""
    executions = [an_execution() for _ in range(20)]
    spool = tmp_path / "spool"
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with Recorder(base_url=f"http://127.0.0.1:{port}", spool_dir=spool) as recorder:
        for each in executions:
            recorder.record(each)
    with (
        running(hashing_settings(tmp_path), port) as service,
        Recorder(base_url=service.url, spool_dir=spool),
        Client(service.url) as client,
    ):
        eventually(lambda: client.status().executions == len(executions))
