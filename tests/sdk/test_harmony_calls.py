"""Calls in a Harmony stream, run and told: events, executors, results written back."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from aftercall.events import ToolCalls
from aftercall.harmony import (
    AsyncHarmonyToolCalls,
    Dispatcher,
    HarmonyCall,
    HarmonyItem,
    HarmonyResult,
    HarmonyText,
    HarmonyToolCalls,
    NoOpExecutor,
    Ran,
)
from aftercall.metrics import ToolCallMetrics
from aftercall.outcomes import Outcome
from tests.sdk.event_records import Kept, args_preview_hash

FINAL = "<|start|>assistant<|channel|>final<|message|>"


class Stream:
    """Reads whole streams with either driver."""

    def __init__(self, driver: type) -> None:
        self.driver = driver
        self.kept, self.metrics = Kept(), ToolCallMetrics()
        self.made: Any = None

    def counted(self, name: str, **labels: str) -> float:
        """What the page of metrics says."""
        return self.metrics.registry.get_sample_value(name, labels) or 0

    async def __call__(self, text: str, executor: Any = "default", chunk: int = 7) -> list[Any]:
        if self.made is None:
            given = {} if executor == "default" else {"executor": executor}
            self.made = self.driver(ToolCalls("request-1", [self.kept, self.metrics]), **given)
        chunks = [text[at : at + chunk] for at in range(0, len(text), chunk)]
        stream = self.made.stream(chunks)
        if isinstance(stream, AsyncIterator):
            return [item async for item in stream]
        # In a thread without a loop, as a program that is not async has it.
        return await asyncio.to_thread(list, stream)


@pytest.fixture(params=[HarmonyToolCalls, AsyncHarmonyToolCalls], ids=["sync", "async"])
def stream(request: pytest.FixtureRequest) -> Stream:
    return Stream(request.param)


def pseudo(payload: str) -> str:
    return f"<|start|>assistant<|channel|>tool<|message|>{payload}<|end|>"


def real(name: str, arguments: object) -> str:
    payload = arguments if isinstance(arguments, str) else json.dumps(arguments)
    header = f"<|start|>assistant<|channel|>commentary to={name} <|constrain|>json"
    return f"{header}<|message|>{payload}<|call|>"


def results_in(items: list[HarmonyItem]) -> list[HarmonyResult]:
    return [item for item in items if isinstance(item, HarmonyResult)]


# --- the seed


async def test_the_ok_path_of_the_seed(stream: Stream) -> None:
    """Planned, then a result with status ok and a latency near 0; the canned JSON in the stream."""
    items = await stream(pseudo('{"tool":"NAME","arguments":{"a":1}}') + f"{FINAL}Done.")
    planned, result = (event.model_dump(exclude_none=True) for event in stream.kept.events)
    assert 0 <= result.pop("latency_ms") < 60_000
    assert planned == {
        "event": "ToolCallPlanned",
        "request_id": "request-1",
        "tool": "NAME",
        "seq": 0,
        "args_preview_hash": args_preview_hash({"a": 1}),
    }
    assert result == {
        "event": "ToolCallResult",
        "request_id": "request-1",
        "tool": "NAME",
        "seq": 0,
        "status": "ok",
    }
    assert stream.counted("tool_calls_total", tool="NAME", status="ok") == 1
    assert stream.counted("tool_call_latency_ms_count", tool="NAME") == 1
    assert [type(item) for item in items][:2] == [HarmonyCall, HarmonyResult]
    (answer,) = results_in(items)
    assert (answer.type, answer.channel, answer.text) == (
        "tool_result",
        "commentary",
        '{"ok":true}',
    )
    assert "".join(item.text for item in items if isinstance(item, HarmonyText)) == "Done."


@pytest.mark.parametrize(
    ("payload", "error_type", "tool"),
    [
        ('{"tool":"big","arguments":{"a":"' + "x" * 8192, "tool_payload_too_large", "big"),
        ('{"tool":"bad","arguments":{', "tool_payload_parse_error", "bad"),
        ("no json", "tool_payload_parse_error", "unknown"),
        ('{"tool":"bad","arguments":[]}', "tool_payload_parse_error", "bad"),
    ],
)
async def test_the_error_modes_of_the_seed(
    stream: Stream, payload: str, error_type: str, tool: str
) -> None:
    """An oversized and a malformed payload: planned, an error result, and the model is told."""
    items = await stream(pseudo(payload) + f"{FINAL}Done.")
    planned, result = stream.kept.events
    assert (planned.tool, planned.seq) == (tool, 0)
    assert (result.status, result.error_type, result.seq) == ("error", error_type, 0)
    assert result.latency_ms is None
    assert stream.counted("tool_calls_total", tool=tool, status="error") == 1
    assert stream.counted("tool_call_latency_ms_count", tool=tool) == 0
    (answer,) = results_in(items)
    assert (answer.status, json.loads(answer.text)["error"]["type"]) == ("error", error_type)
    assert "".join(i.text for i in items if isinstance(i, HarmonyText)) == "Done."


async def test_a_call_is_told_before_it_is_run_and_as_soon_as_it_is_whole() -> None:
    """Not at the end of the stream."""
    kept = Kept()
    seen: list[int] = []
    dispatcher = Dispatcher({"a": lambda: seen.append(len(kept.events))})
    tool_calls = HarmonyToolCalls(ToolCalls("r", [kept]), dispatcher)
    tool_calls.feed(real("functions.a", {})[:-1])
    assert kept.events == []
    tool_calls.feed(">")
    assert (seen, len(kept.events)) == ([1], 2)


# --- the dispatcher


def add(a: int, b: int = 1) -> int:
    return a + b


async def add_async(a: int, b: int = 1) -> int:
    await asyncio.sleep(0)
    return a + b


def add_later(a: int, b: int = 1) -> Any:
    return add_async(a, b)


@pytest.mark.parametrize("function", [add, add_async, add_later])
async def test_real_callables_are_run(stream: Stream, function: Callable[..., Any]) -> None:
    """Plain ones, coroutines, and plain ones that return an awaitable; by keyword arguments."""
    dispatcher = Dispatcher({"add": function, "math.add": function})
    items = await stream(
        real("functions.add", {"a": 1}) + real("math.add", {"a": 1, "b": 2}), dispatcher
    )
    assert [(r.tool, r.status, r.text) for r in results_in(items)] == [
        ("add", "ok", "2"),
        ("math.add", "ok", "3"),
    ]
    assert [result.status for result in stream.kept.results] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("functions.ad", "did you mean 'add'?"),
        ("functions.zzz", "there are 'add'"),
        ("functions.__import__('os').system", "there are 'add'"),
        ("functions.add.__globals__", "there is no tool"),
    ],
)
async def test_an_unknown_tool_is_an_error_with_near_names(
    stream: Stream, name: str, expected: str
) -> None:
    """A name is looked up and nothing else; the model learns which names there are."""
    (answer,) = results_in(await stream(real(name, {}), Dispatcher({"add": add})))
    (result,) = stream.kept.results
    assert (result.status, result.error_type) == ("error", "tool_not_found")
    assert expected in json.loads(answer.text)["error"]["message"]


def raising(error: BaseException) -> Callable[[], None]:
    def tool() -> None:
        raise error

    return tool


@pytest.mark.parametrize(
    ("tool", "arguments", "error_type", "message"),
    [
        (raising(ValueError("topK must be <= 10")), {}, "ValueError", "topK must be <= 10"),
        (raising(SystemExit(3)), {}, "SystemExit", "exited"),
        (raising(KeyError("token=" + "k" * 40)), {}, "KeyError", "token="),
        (add, {}, "InvalidInput", "missing a required argument: 'a'"),
        (add, {"a": 1, "c": 2}, "InvalidInput", "unexpected keyword argument 'c'"),
        (lambda: Outcome.error("no_films", "a menu"), {}, "no_films", "a menu"),
    ],
)
async def test_what_fails_is_an_error_of_its_type(
    stream: Stream,
    tool: Callable[..., Any],
    arguments: dict[str, object],
    error_type: str,
    message: str,
) -> None:
    """Exceptions, exits, arguments that do not fit, typed errors; the next call is run."""
    dispatcher = Dispatcher({"tool": tool, "add": add})
    text = real("functions.tool", arguments) + real("functions.add", {"a": 1})
    failed, ok = results_in(await stream(text, dispatcher))
    told = json.loads(failed.text)["error"]
    assert (failed.status, told["type"], ok.text) == ("error", error_type, "2")
    assert message in told["message"]
    assert "k" * 40 not in failed.text
    assert [result.error_type for result in stream.kept.results] == [error_type, None]


@pytest.mark.parametrize("function", [add_async, add_later])
async def test_the_sync_driver_waits_for_coroutines_where_a_loop_is_running(
    function: Callable[..., Any],
) -> None:
    """They run on a loop of their own."""
    driver = HarmonyToolCalls(ToolCalls("r", []), Dispatcher({"add": function}))
    (answer,) = results_in(driver.feed(real("functions.add", {"a": 1})))
    assert answer.text == "2"


async def test_an_executor_of_somebody_else_may_raise(stream: Stream) -> None:
    """It is an error result like any other."""

    class Broken(NoOpExecutor):
        def run(self, call: HarmonyCall) -> Ran:
            raise RuntimeError("broken" if call.arguments == {} else "")

    (answer,) = results_in(await stream(real("functions.a", {}), Broken()))
    assert json.loads(answer.text) == {"error": {"type": "RuntimeError", "message": "broken"}}
    assert [result.error_type for result in stream.kept.results] == ["RuntimeError"]


async def test_a_caller_that_gives_up_leaves_no_call_without_a_word() -> None:
    """Cancelled while a tool ran: the call has ended as cancelled."""
    kept = Kept()
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    driver = AsyncHarmonyToolCalls(ToolCalls("r", [kept]), Dispatcher({"wait": wait}))
    task = asyncio.create_task(driver.feed(real("functions.wait", {})))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (len(kept.planned), [each.error_type for each in kept.results]) == (1, ["cancelled"])


async def test_what_may_be_text_of_another_call_is_not_run(stream: Stream) -> None:
    """A tool call quoted in a string that never ended does nothing, and is no failure of its tool.

    Else whoever writes a call into a text would have it run, or failures of any tool recorded.
    """
    ran: list[str] = []
    kept = Kept()
    stream.made = stream.driver(
        ToolCalls("request-1", [kept]), Dispatcher({"rm": lambda: ran.append("rm")})
    )
    items = await stream(real("functions.write", '{"text": "' + real("functions.rm", {})))
    assert (ran, kept.calls) == ([], [])
    assert [(each.tool, each.error_type) for each in kept.results] == [
        ("write", "tool_payload_parse_error")
    ]
    assert [answer.status for answer in results_in(items)] == ["error"]
