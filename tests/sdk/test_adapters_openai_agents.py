"""The OpenAI Agents SDK: each call recorded once with its right outcome, repaired or advised on."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    ModelBehaviorError,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    function_tool,
    set_tracing_disabled,
    tool_input_guardrail,
)
from agents.testing import ScriptedModel, assistant_message, function_call

from aftercall import ConfigurationError, ToolAnnotations
from aftercall.adapters.openai_agents import ToolReflection
from tests.sdk.scripted_advice import (
    TOP_K,
    UNSURE,
    AsyncScripted,
    Records,
    SyncScripted,
    answer,
    write,
    write_async,
)

DEFAULT_TEXT = "An error occurred while running the tool. Please try again."


@pytest.fixture(autouse=True)
def no_tracing() -> Iterator[None]:
    """Traces are exported to OpenAI unless this is said."""
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


def search(query: str, top_k: int) -> str:
    """Search it."""
    if top_k > 10:
        raise ValueError("top_k must be <= 10")
    return f"{top_k} hits"


async def slow(query: str) -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return query


def reflection_of(
    *answers: Any, client: Any = None, **options: Any
) -> tuple[ToolReflection, Records, Any]:
    records, service = Records(), client or AsyncScripted(*answers)
    return ToolReflection(client=service, recorder=records, **options), records, service


async def outputs_of(
    tools: list[Any],
    *calls: tuple[str, Any],
    hooks: Any = None,
    run_config: RunConfig | None = None,
) -> list[str]:
    """What the model reads of each call of a run."""
    steps = [
        [function_call(name, arguments, call_id=f"call-{number}")]
        for number, (name, arguments) in enumerate(calls)
    ]
    agent = Agent(
        name="ada", model=ScriptedModel([*steps, [assistant_message("done")]]), tools=tools
    )
    run = await Runner.run(agent, "look it up", hooks=hooks, run_config=run_config)
    return [str(item.output) for item in run.new_items if item.type == "tool_call_output_item"]


FAILING = ("search", {"query": "x", "top_k": 50})
FITTING = ("search", {"query": "x", "top_k": 5})


@pytest.mark.parametrize("kind", [AsyncScripted, SyncScripted])
async def test_a_reflecting_tool_repairs_its_call(kind: Any) -> None:
    """The model reads the repaired result; both attempts are recorded, also beside the hooks."""
    reflection, records, service = reflection_of(client=kind(answer(TOP_K)), server_name="rag")
    tool = reflection.reflecting(function_tool(search))
    told = await outputs_of([tool], FAILING, FITTING, hooks=reflection.run_hooks)
    assert told == ["10 hits", "5 hits"]
    first, second, third = records.executions
    assert [e.outcome for e in records.executions] == ["failure", "success", "success"]
    assert first.parameters == {"query": "x", "top_k": 50}
    assert (first.agent, first.server_name, first.tool_name) == ("ada", "rag", "search")
    assert (second.repair_of, second.parameters["top_k"]) == (first.execution_id, 10)
    assert first.session_id == third.session_id is not None
    assert service.asked[0].input_schema["required"] == ["query", "top_k"]


@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({}, "ValueError: top_k must be <= 10"),
        ({"failure_error_function": lambda _, error: f"Sorry: {error}"},
         "Sorry: top_k must be <= 10"),
    ],
    ids=["hidden by default", "a function of its own"],
)  # fmt: skip
async def test_a_reflecting_tool_tells_its_error_before_the_advice(
    options: dict[str, Any], own: str
) -> None:
    """Also the one that the SDK hides; a failure function's words stay the first."""
    reflection, records, _ = reflection_of(answer(UNSURE))
    (told,) = await outputs_of([reflection.reflecting(function_tool(search, **options))], FAILING)
    said, _, advice = told.partition("\n\n")
    assert said == own
    assert 'replace "/top_k": 50 -> 10' in advice
    assert len(records.executions) == 1


def refuses(limit: int) -> str:
    """Write, and run an agent whose model blunders."""
    raise ModelBehaviorError(f"Invalid JSON input for tool other: limit {limit}")


async def test_a_tool_has_run_unless_the_sdk_refused() -> None:
    """An error of the SDK's that the tool has met is no refusal of the tool's arguments."""
    reflection, _, service = reflection_of()
    tools = [reflection.reflecting(function_tool(each)) for each in (write, write_async, refuses)]
    called = [("write", 50), ("write_async", 50), ("write", "many"), ("refuses", 50)]
    await outputs_of(tools, *((name, {"limit": limit}) for name, limit in called))
    assert service.said_of_the_run == [True, True, None, None]
    assert [each.error.code for each in service.asked] == [None, None, "-32602", None]


async def test_without_a_failure_function_the_run_ends_with_a_note() -> None:
    """As it would without us."""
    reflection, records, _ = reflection_of(answer(UNSURE))
    strict = function_tool(search, failure_error_function=None)
    with pytest.raises(Exception, match="top_k must be <= 10") as raised:
        await outputs_of([reflection.reflecting(strict)], FAILING)
    causes = (raised.value, raised.value.__cause__)
    assert any("Suggestions" in n for e in causes for n in getattr(e, "__notes__", ()))
    assert [e.outcome for e in records.executions] == ["failure"]


@pytest.mark.parametrize("hooked", [True, False])
async def test_hooks_and_failure_record_each_call_once(hooked: bool) -> None:
    """The failure comes by the failure function, the success by the hooks; unseen without them."""
    reflection, records, service = reflection_of(answer(UNSURE))
    tool = function_tool(search, failure_error_function=reflection.failure)
    hooks = reflection.run_hooks if hooked else None
    told = await outputs_of([tool], FAILING, FITTING, hooks=hooks)
    assert told[0].startswith("ValueError: top_k must be <= 10\n\nSuggestions from Aftercall")
    assert told[1] == "5 hits"
    first, *others = records.executions
    assert (first.outcome, first.agent) == ("failure", "ada")
    assert first.parameters == {"query": "x", "top_k": 50}
    assert bool(service.asked[0].input_schema) is hooked
    seen = [(each.session_id, each.outcome, each.result) for each in others]
    assert seen == ([(first.session_id, "success", "5 hits")] if hooked else [])


async def test_a_failure_that_the_sdk_words_is_no_success() -> None:
    """Hooks alone see the default text; it is recorded as the failure that it tells of."""
    reflection, records, service = reflection_of(answer())
    told = await outputs_of([function_tool(search)], FAILING, hooks=reflection.run_hooks)
    assert told == [DEFAULT_TEXT]
    (execution,) = records.executions
    assert (execution.outcome, len(service.asked)) == ("failure", 1)
    assert execution.error.message == DEFAULT_TEXT


async def test_a_failure_that_looks_like_a_result_is_not_recorded_as_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failure function of somebody else hides outcomes: nothing is recorded, and that is told."""
    reflection, records, _ = reflection_of()
    tool = function_tool(search, failure_error_function=lambda *_: "Sorry.")
    await outputs_of([tool], FAILING, FITTING, hooks=reflection.run_hooks)
    assert records.executions == []
    assert caplog.text.count("calls of search are not recorded") == 1


async def test_timeouts_are_failures_either_way() -> None:
    """Each attempt has the tool's time; the model reads what the SDK says of it."""
    reflection, records, _ = reflection_of(answer(), answer())
    text = "Tool 'slow' timed out after 0.01 seconds."
    for tool in (
        reflection.reflecting(function_tool(slow, timeout=0.01)),
        function_tool(slow, timeout=0.01),
    ):
        told = await outputs_of([tool], ("slow", {"query": "x"}), hooks=reflection.run_hooks)
        assert told == [text]
    for execution in records.executions:
        assert execution.error.type == "ToolTimeoutError"
    assert len(records.executions) == 2


async def test_what_somebody_looked_at_is_not_sent_otherwise() -> None:
    """A tool with input guardrails or approval is advised on; its check of arguments stays."""
    seen = []

    @tool_input_guardrail
    def looks(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        seen.append(data.context.tool_arguments)
        return ToolGuardrailFunctionOutput.allow()

    reflection, records, _ = reflection_of(answer(TOP_K))
    guarded = function_tool(search, tool_input_guardrails=[looks])
    (told,) = await outputs_of([reflection.reflecting(guarded)], FAILING)
    assert "Suggestions from Aftercall" in told
    assert (len(seen), len(records.executions)) == (1, 1)

    async def needs(*_: Any) -> bool:
        return True

    with pytest.raises(ConfigurationError, match="decides by a function"):
        reflection.reflecting(function_tool(search, needs_approval=needs))
    inner = Agent(name="inner").as_tool("inner", "Ask it.")
    with pytest.raises(ConfigurationError, match="is an agent"):
        reflection.reflecting(inner)


async def test_sessions_are_runs_unless_somebody_says_otherwise() -> None:
    """Two runs are two sessions; a group of runs is one."""
    reflection, records, _ = reflection_of()
    tool = reflection.reflecting(function_tool(search))
    for _ in range(2):
        await outputs_of([tool], FITTING, FITTING)
    sessions = [e.session_id for e in records.executions]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]
    await outputs_of([tool], FITTING, run_config=RunConfig(group_id="chat-7"))
    assert records.executions[-1].session_id == "chat-7"


async def test_claims_are_given_by_tool_name() -> None:
    """They go with the question; a tool that is wrapped twice is wrapped once."""
    claims = ToolAnnotations(read_only_hint=True)
    reflection, _, service = reflection_of(answer(), annotations={"search": claims})
    tool = reflection.reflecting(function_tool(search))
    assert reflection.reflecting(tool) is tool
    await outputs_of([tool], FAILING)
    assert service.annotations == [claims]


LOOSE = "{'query': 'x', 'top_k': 5,}"
CUT_OFF = '{"query": "x", "top_k": 5'


@pytest.mark.parametrize("text", [LOOSE, f"```json\n{LOOSE}\n```", json.dumps(LOOSE)])
async def test_a_loose_text_is_called_with_its_object(text: str) -> None:
    """The SDK alone refuses it, and the model would have to write it again."""
    reflection, records, _ = reflection_of()
    tool = function_tool(search)
    (refused,) = await outputs_of([tool], ("search", text))
    assert refused == DEFAULT_TEXT
    assert await outputs_of([reflection.reflecting(tool)], ("search", text)) == ["5 hits"]
    (recorded,) = records.executions
    assert recorded.parameters == {"query": "x", "top_k": 5}
    assert (recorded.outcome, recorded.arguments_text) == ("success", text)


async def test_a_loose_text_that_fails_is_repaired() -> None:
    """Its object is asked about, and changed where the tool refuses a value of it."""
    reflection, records, service = reflection_of(answer(TOP_K))
    tool = reflection.reflecting(function_tool(search))
    assert await outputs_of([tool], ("search", "{'query': 'x', 'top_k': 50}")) == ["10 hits"]
    assert service.asked[0].parameters == {"query": "x", "top_k": 50}
    assert [each.parameters["top_k"] for each in records.executions] == [50, 10]


async def test_a_cut_off_text_is_left_to_the_sdk_and_recorded() -> None:
    """Its refusal is what the model reads; the call failed once, and nothing was made of it."""
    reflection, records, _ = reflection_of(answer(TOP_K))
    (told,) = await outputs_of([reflection.reflecting(function_tool(search))], ("search", CUT_OFF))
    assert "Invalid JSON input for tool search" in told
    (recorded,) = records.executions
    assert (recorded.outcome, recorded.arguments_text) == ("failure", CUT_OFF)
    assert (recorded.parameters, recorded.parameters_known) == ({}, False)
    strict = function_tool(search, failure_error_function=None)
    with pytest.raises(ModelBehaviorError):
        await outputs_of([reflection.reflecting(strict)], ("search", CUT_OFF))


@pytest.mark.parametrize("text", [LOOSE, CUT_OFF])
async def test_hooks_record_a_text_that_the_sdk_refuses(text: str) -> None:
    """Without a reflecting tool nothing is called otherwise; the refusal is a failed call."""
    reflection, records, _ = reflection_of(answer())
    tool = function_tool(search, failure_error_function=reflection.failure)
    (told,) = await outputs_of([tool], ("search", text), hooks=reflection.run_hooks)
    assert "Invalid JSON input" in told
    (recorded,) = records.executions
    assert (recorded.outcome, recorded.arguments_text) == ("failure", text)
