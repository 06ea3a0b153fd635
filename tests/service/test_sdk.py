"""The SDK against a true service: clients, recorder, and the same errors on both sides."""

from typing import Any
from uuid import uuid4

from aftercall import Client, Execution, ExecutionError, FailedCall, ToolSpec
from tests.service.running_service import RunningService, eventually, execution


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
