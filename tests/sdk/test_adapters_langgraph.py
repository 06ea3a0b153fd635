"""LangChain's agents and LangGraph's tool nodes: recorded, repaired, told, and left alone."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

from aftercall import Outcome, ToolAnnotations
from aftercall.adapters.langgraph import ReflectionMiddleware
from aftercall.models import Execution
from retrieval.knowledge.reading.reader import read_error
from tests.sdk.scripted_advice import (
    TOP_K,
    UNSURE,
    AsyncScripted,
    Records,
    SyncScripted,
    answer,
    change,
    suggestion,
    write,
)


@tool
def search(query: str, top_k: int) -> str:
    """Search it."""
    if top_k > 10:
        raise ValueError("top_k must be <= 10")
    return f"{top_k} hits"


class Bounded(BaseModel):
    query: str
    top_k: int = Field(le=10)


@tool(args_schema=Bounded)
def checked(query: str, top_k: int) -> str:
    """Search it, with a schema that refuses."""
    return f"{top_k} hits for {query}"


class ScriptedModel(GenericFakeChatModel):
    def bind_tools(self, *_: Any, **__: Any) -> "ScriptedModel":
        return self


def call_of(name: str, arguments: dict[str, Any]) -> AIMessage:
    return AIMessage(
        content="", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}]
    )


def graph_of(
    tools: Sequence[BaseTool | Callable[..., Any]], reflection: ReflectionMiddleware, **options: Any
) -> Any:
    checkpointer = options.pop("checkpointer", None)
    node = ToolNode(
        tools,
        wrap_tool_call=reflection.wrap_tool_call,
        awrap_tool_call=reflection.awrap_tool_call,
        **options,
    )
    graph = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    return graph.compile(checkpointer=checkpointer)


def run(graph: Any, name: str, arguments: dict[str, Any], *, way: str = "sync") -> ToolMessage:
    state = {"messages": [HumanMessage("look it up"), call_of(name, arguments)]}
    config = {"configurable": {"thread_id": "t-1"}}
    if way == "sync":
        answered = graph.invoke(state, config)
    else:
        answered = asyncio.run(graph.ainvoke(state, config))
    return answered["messages"][-1]


def reflecting(
    *answers: Any, client: Any = None, **options: Any
) -> tuple[ReflectionMiddleware, Records, Any]:
    records, service = Records(), client or SyncScripted(*answers)
    made = ReflectionMiddleware(client=service, recorder=records, **options)
    return made, records, service


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_failed_call_is_repaired_in_a_tool_node(way: str) -> None:
    """The graph gets the repaired result, with the repair in its metadata; both are recorded."""
    client = SyncScripted(answer(TOP_K)) if way == "sync" else AsyncScripted(answer(TOP_K))
    reflection, records, service = reflecting(
        client=client, agent="ada", server_name="rag", context=lambda _: "look it up"
    )
    message = run(graph_of([search], reflection), "search", {"query": "x", "top_k": 50}, way=way)
    assert (message.content, message.status) == ("10 hits", "success")
    facts = message.response_metadata["aftercall"]
    assert (facts["repaired"], facts["note"]) == (True, "repaired via reflection")
    assert facts["firstError"] == "top_k must be <= 10"
    first, second = records.executions
    assert first.parameters == {"query": "x", "top_k": 50}
    assert (first.agent, first.server_name, first.session_id) == ("ada", "rag", "t-1")
    assert first.context == "look it up"
    assert (second.parameters["top_k"], second.result) == (10, "10 hits")
    assert service.asked[0].input_schema["required"] == ["query", "top_k"]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_is_served_as_middleware(way: str) -> None:
    """`create_agent` gives its name, and a `Client` serves `invoke` and `ainvoke`."""
    reflection, records, _ = reflecting(answer(TOP_K))
    turns = iter([call_of("search", {"query": "x", "top_k": 50}), AIMessage("done")])
    agent = create_agent(
        ScriptedModel(messages=turns), [search], middleware=[reflection], name="ada"
    )
    state: Any = {"messages": [("human", "look it up")]}
    answered = agent.invoke(state) if way == "sync" else asyncio.run(agent.ainvoke(state))
    assert [m.content for m in answered["messages"] if m.type == "tool"] == ["10 hits"]
    assert [(e.agent, e.outcome) for e in records.executions] == [
        ("ada", "failure"),
        ("ada", "success"),
    ]


@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({}, "ValueError: top_k must be <= 10\n\n"),
        ({"handle_tool_errors": True}, "Error: ValueError('top_k must be <= 10')\n Please fix"),
    ],
)
def test_the_model_reads_the_tools_own_error_first(options: dict[str, Any], own: str) -> None:
    """In a message with status error, before the advice; recorded without the node's frame."""
    reflection, records, _ = reflecting(answer(UNSURE))
    graph = graph_of([search], reflection, **options)
    message = run(graph, "search", {"query": "x", "top_k": 50})
    assert message.status == "error"
    assert str(message.content).startswith(own)
    assert "\n\nSuggestions from Aftercall (recorded data, not instructions):" in message.content
    error = records.executions[0].error
    assert (error.type, error.message) == ("ValueError", "top_k must be <= 10")


@pytest.mark.parametrize("handled", [True, False])
def test_refused_arguments_are_told_so_that_the_service_knows_nothing_ran(handled: bool) -> None:
    """The schema's own refusal is recorded, without the arguments that LangGraph repeats."""
    options: dict[str, Any] = {} if handled else {"handle_tool_errors": False}
    reflection, records, _ = reflecting(answer(TOP_K))
    graph = graph_of([checked], reflection, **options)
    message = run(graph, "checked", {"query": "private matter", "top_k": 50})
    assert message.content == "10 hits for private matter"
    first = records.executions[0]
    assert (first.error.type, "private matter" in first.error.message) == ("ValidationError", False)
    assert read_error(first.error, first.parameters).rejected_before_run


@pytest.mark.parametrize("handle", [True, False])
def test_a_tool_has_run_unless_its_schema_refused(handle: bool) -> None:
    """Raised or told by the tool node; a `ToolException` is left to its words."""

    @tool
    def hands_on(limit: int) -> str:
        """Tell what a server said."""
        raise ToolException(f"Input validation error: {limit} is too many")

    @tool
    def breaks(limit: int) -> str:
        """Write, and call something wrongly."""
        raise TypeError(f"inner() got an unexpected keyword argument 'limit' {limit}")

    reflection, _, service = reflecting()
    graph = graph_of([tool(write), hands_on, breaks], reflection, handle_tool_errors=handle)
    for name, limit in (("write", 50), ("write", "many"), ("hands_on", 50), ("breaks", 50)):
        run(graph, name, {"limit": limit})
    assert service.said_of_the_run == [True, None, None, True]
    types = [each.error.type for each in service.asked]
    assert types == ["ValidationError", "ValidationError", "ToolException", "TypeError"]


def test_an_interrupt_passes_through_unrecorded() -> None:
    """The person is asked, the answer resumes the tool, and the one outcome is recorded."""

    @tool
    def delete(path: str) -> str:
        """Delete it after asking."""
        return f"deleted {path}" if interrupt("sure?") == "yes" else "kept"

    reflection, records, service = reflecting()
    graph = graph_of([delete], reflection, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t-1"}}
    state = {"messages": [call_of("delete", {"path": "a"})]}
    paused = graph.invoke(state, config)
    assert paused["__interrupt__"][0].value == "sure?"
    assert (records.executions, service.asked) == ([], [])
    resumed = graph.invoke(Command(resume="yes"), config)
    assert resumed["messages"][-1].content == "deleted a"
    assert [e.outcome for e in records.executions] == ["success"]


def test_what_the_graph_injects_is_not_recorded() -> None:
    """State, runtime and call id are neither recorded nor in the schema, made up or not."""

    @tool
    def peek(
        query: str,
        state: Annotated[dict[str, Any], InjectedState],
        call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
    ) -> str:
        """Look into the graph."""
        if query != "right":
            raise ValueError("unknown query")
        return f"{len(state['messages'])} {call_id} {runtime.tool_call_id}"

    mended = suggestion(change("/query", "right", before="wrong"))
    reflection, records, service = reflecting(answer(mended))
    arguments = {"query": "wrong", "state": "made up", "runtime": "made up"}
    message = run(graph_of([peek], reflection), "peek", arguments)
    assert message.content == "2 call-peek call-peek"
    assert [e.parameters for e in records.executions] == [{"query": "wrong"}, {"query": "right"}]
    assert list(service.asked[0].input_schema["properties"]) == ["query"]


def test_a_command_is_the_outcome_that_its_message_tells() -> None:
    """Its message is the result; where that says error, the advice is added to it there."""

    @tool
    def move(to: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Change the state of the graph."""
        status: Any = "success" if to == "here" else "error"
        told = ToolMessage(f"moved to {to}", tool_call_id=call_id, status=status)
        return Command(update={"messages": [told]})

    reflection, records, _ = reflecting(answer(suggestion(change("/to", "here"), confidence=0.5)))
    graph = graph_of([move], reflection)
    assert run(graph, "move", {"to": "here"}).content == "moved to here"
    message = run(graph, "move", {"to": "there"})
    assert str(message.content).startswith("moved to there\n\nSuggestions from Aftercall")
    assert [(e.outcome, e.result) for e in records.executions] == [
        ("success", "moved to here"),
        ("failure", None),
    ]


def test_claims_come_from_the_tools_metadata_only() -> None:
    """Booleans are claims, other words are none, and without any the registered ones count."""
    for metadata, expected in (
        ({"readOnlyHint": True, "other": 1}, ToolAnnotations(read_only_hint=True)),
        ({"readOnlyHint": "yes"}, None),
        ({"other": 1}, None),
        (None, None),
    ):
        described = search.model_copy(update={"metadata": metadata})
        reflection, _, service = reflecting(answer())
        run(graph_of([described], reflection), "search", {"query": "x", "top_k": 50})
        assert service.annotations == [expected]


def test_a_tool_that_people_approve_is_never_retried() -> None:
    """A retry would have arguments that nobody approved; the model is advised."""
    reflection, records, _ = reflecting(answer(TOP_K), never_retried=["search"])
    message = run(graph_of([search], reflection), "search", {"query": "x", "top_k": 50})
    assert "Suggestions from Aftercall" in str(message.content)
    assert len(records.executions) == 1


def test_a_typed_error_may_stand_in_the_artifact() -> None:
    """`response_format="content_and_artifact"` with an `Outcome` says what the text cannot."""

    @tool(response_format="content_and_artifact")
    def films(page: str) -> tuple[str, Outcome[Any]]:
        """List films."""
        if page:
            return "1 film", Outcome.ok([page], status="weak")
        return "nothing", Outcome.low_utility("this is a menu")

    reflection, records, _ = reflecting(answer())
    graph = graph_of([films], reflection)
    run(graph, "films", {"page": "Alien"})
    run(graph, "films", {"page": ""})
    told: list[Execution] = records.executions
    assert told[0].result_status == "weak"
    assert told[1].error.type == "low_utility"


def agent_that_writes(text: str, reflection: ReflectionMiddleware) -> Any:
    """An agent whose model writes a call's arguments as a text, as LangChain parses it."""
    told = {"id": "call-1", "type": "function", "function": {"name": "search", "arguments": text}}
    wrote = AIMessage(content="", additional_kwargs={"tool_calls": [told]})
    model = ScriptedModel(messages=iter([wrote, AIMessage("done")]))
    return create_agent(model, [search], middleware=[reflection], name="ada")


def asked(agent: Any, way: str) -> list[Any]:
    state, config = {"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t-1"}}
    if way == "sync":
        return agent.invoke(state, config)["messages"]  # type: ignore[no-any-return]
    return asyncio.run(agent.ainvoke(state, config))["messages"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_call_that_langchain_could_not_parse_is_read(way: str) -> None:
    """The agent would have ended without it; the tool is called with the object that it says."""
    reflection, records, _ = reflecting()
    messages = asked(agent_that_writes("{'query': 'x', 'top_k': 5,}", reflection), way)
    assert [each.content for each in messages if isinstance(each, ToolMessage)] == ["5 hits"]
    assert messages[1].invalid_tool_calls == []
    facts = messages[1].response_metadata["aftercall"]
    assert (facts["calls"], "were read as one" in facts["note"]) == (["call-1"], True)
    (recorded,) = records.executions
    assert recorded.parameters == {"query": "x", "top_k": 5}


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_cut_off_call_stays_invalid_and_is_recorded(way: str) -> None:
    """LangChain does with it what it does; the call failed, with its text."""
    reflection, records, service = reflecting()
    messages = asked(agent_that_writes('{"query": "x", "top_k": 5', reflection), way)
    assert not any(isinstance(each, ToolMessage) for each in messages)
    assert len(messages[1].invalid_tool_calls) == 1
    (recorded,) = records.executions
    assert (recorded.outcome, recorded.arguments_text) == ("failure", '{"query": "x", "top_k": 5')
    assert (recorded.agent, recorded.session_id) == ("ada", "t-1")
    assert service.asked == []
