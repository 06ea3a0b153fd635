"""Plain functions: what is recorded, what is repaired, and what stays as it was."""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pydantic import Field, ValidationError, validate_call

from aftercall import ConfigurationError, ToolAnnotations
from aftercall.adapters.functions import recorded, reflecting
from aftercall.models import Execution, SuggestResponse
from aftercall.reflection import ReflectionPolicy
from tests.sdk.scripted_advice import (
    FAST,
    TOP_K,
    UNSURE,
    AsyncScripted,
    Records,
    SyncScripted,
    answer,
    change,
    suggestion,
    write,
    write_async,
)


def search(query: str, top_k: int = 5, *, tags: list[str] | None = None) -> list[str]:
    """Search it."""
    if top_k > 10:
        raise ValueError("top_k must be <= 10")
    return [f"{query} {number} {tags}" for number in range(top_k)]


async def search_async(query: str, top_k: int = 5) -> list[str]:
    await asyncio.sleep(0)
    return search(query, top_k)


def test_a_failed_call_is_repaired_and_every_attempt_recorded() -> None:
    """The caller gets the repaired result; arguments are told by name, defaults are left out."""
    records, service = Records(), SyncScripted(answer(TOP_K))
    tool = reflecting(client=service, recorder=records, agent="librarian", session_id=lambda: "s")(
        search
    )
    assert len(tool("memory", 50)) == 10
    first, second = records.executions
    assert first.parameters == {"query": "memory", "top_k": 50}
    assert (first.tool_name, first.agent, first.session_id) == ("search", "librarian", "s")
    assert (second.parameters["top_k"], second.repair_of) == (10, first.execution_id)
    tool("memory")
    assert records.executions[-1].parameters == {"query": "memory"}


async def test_an_async_function_is_served_by_either_client() -> None:
    """A Client is asked in a thread, an AsyncClient awaited; the function stays a coroutine."""
    for service in (SyncScripted(answer(TOP_K)), AsyncScripted(answer(TOP_K))):
        records = Records()
        tool = reflecting(client=service, recorder=records)(search_async)
        assert inspect.iscoroutinefunction(tool)
        assert len(await tool("memory", top_k=50)) == 10
        assert [e.outcome for e in records.executions] == ["failure", "success"]


def test_the_signature_and_the_error_stay_the_functions_own() -> None:
    """Name, docstring, signature and exception are those of the function; advice is a note."""
    tool = reflecting(client=SyncScripted(answer(UNSURE)), recorder=Records())(search)
    assert (tool.__name__, tool.__doc__) == ("search", "Search it.")
    assert inspect.signature(tool) == inspect.signature(search)
    with pytest.raises(ValueError, match="top_k") as raised:
        tool("memory", 50)
    assert str(raised.value) == "top_k must be <= 10"
    assert "Suggestions from Aftercall" in raised.value.__notes__[0]


def test_recorded_only_records() -> None:
    """Nobody is asked, and nothing is called twice."""
    records = Records()
    calls = []

    @recorded(recorder=records, name="lookup", server_name="files")
    def look_up(path: str) -> str:
        calls.append(path)
        raise FileNotFoundError(path)

    with pytest.raises(FileNotFoundError):
        look_up("a")
    assert calls == ["a"]
    assert [(e.tool_name, e.server_name, e.outcome) for e in records.executions] == [
        ("lookup", "files", "failure")
    ]


def test_methods_keep_their_object_and_what_is_unrecorded_is_passed_on() -> None:
    """`self` and named parameters are never recorded, and a retry has them all the same."""
    records = Records()

    class Library:
        limit = 10

        @reflecting(client=SyncScripted(answer(TOP_K)), recorder=records, unrecorded=["connection"])
        def search(self, connection: object, query: str, top_k: int) -> tuple[object, str, int]:
            if top_k > self.limit:
                raise ValueError("top_k must be <= 10")
            return connection, query, top_k

    connection = object()
    assert Library().search(connection, "memory", top_k=50) == (connection, "memory", 10)
    assert records.executions[0].parameters == {"query": "memory", "top_k": 50}


def test_a_call_that_does_not_fit_fails_as_python_says() -> None:
    """Arguments that fit no parameter are recorded as given; the `TypeError` is Python's own."""
    records = Records()
    renamed = suggestion(
        change("/topK", None, op="remove", before=3), change("/top_k", 3, op="add")
    )
    tool: Any = reflecting(client=SyncScripted(answer(renamed)), recorder=records)(search)
    assert len(tool("memory", topK=3)) == 3
    assert records.executions[0].parameters == {"query": "memory", "topK": 3}
    error = records.executions[0].error
    assert error.type == "TypeError"
    assert "unexpected keyword argument 'topK'" in error.message


def numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (numbers, {}, "is a generator"), (staticmethod(search), {}, "below @staticmethod"),
        (Records, {}, "is no function"), (search, {"client": AsyncScripted()}, "give a Client"),
        (search, {"unrecorded": ["nothing"]}, "unrecorded names nothing"),
    ],
)  # fmt: skip
def test_what_has_no_single_end_is_refused(
    function: Any, options: dict[str, Any], said: str
) -> None:
    """Generators, classes, staticmethods and an AsyncClient for a plain function: told at once."""
    settings = {"client": SyncScripted(), "recorder": Records(), **options}
    with pytest.raises(ConfigurationError, match=said):
        reflecting(**settings)(function)


def test_an_awaitable_of_a_plain_function_is_no_outcome() -> None:
    """What is still to be awaited is neither success nor failure, and not recorded."""
    records = Records()
    tool = recorded(recorder=records, name="late")(lambda: search_async("memory"))
    assert [len(asyncio.run(tool())) for _ in range(2)] == [5, 5]
    assert records.executions == []


async def test_callable_objects_are_functions() -> None:
    """With an `async` call they are awaited; they go by the name of their class or function."""

    class Lookup:
        def __call__(self, query: str) -> str:
            return query

    class LookupAsync:
        async def __call__(self, query: str) -> str:
            return query

    records = Records()
    decorate: Any = recorded(recorder=records)
    assert decorate(Lookup())("x") == "x"
    assert await decorate(LookupAsync())("x") == "x"
    assert await decorate(partial(search_async, top_k=1))("x") == ["x 0 None"]
    assert [e.tool_name for e in records.executions] == ["Lookup", "LookupAsync", "search_async"]
    assert [e.parameters for e in records.executions] == [{"query": "x"}] * 3


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((1, 2), {"c": 3}), ((1, 2, 3, 4, 5), {}), ((1,), {"b": 2, "c": 3, "d": 4}), ((), {"b": 1})],
)
def test_arguments_come_back_as_they_were(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Told by name and called again unchanged, a function gets the same arguments."""
    calls = []

    @reflecting(
        client=SyncScripted(answer(suggestion(action="retry_unchanged"))), recorder=Records(),
        policy=FAST,
    )  # fmt: skip
    def takes(a: int = 0, /, b: int = 0, c: int = 0, *rest: int, **more: int) -> None:
        calls.append((a, b, c, rest, more))
        if len(calls) == 1:
            raise TimeoutError

    takes(*args, **kwargs)
    assert calls[0] == calls[1]


def test_the_question_carries_schema_and_claims() -> None:
    """The schema comes from the type hints, as far as it can be said; claims from who decorates."""
    service, claims = SyncScripted(answer()), ToolAnnotations(read_only_hint=True)

    @reflecting(client=service, recorder=Records(), annotations=claims)
    def takes(callback: object, call: Execution, *rest: int, flag: bool = True) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        takes(print, None)
    schema: Any = service.asked[0].input_schema
    assert (schema["required"], schema["additionalProperties"]) == (["callback", "call"], False)
    assert set(schema["properties"]["call"]["properties"]) > {"toolName", "error"}
    assert schema["properties"]["rest"] == {"type": "array", "items": {"type": "integer"}}
    assert "ExecutionError" in str(schema["$defs"])
    assert service.annotations == [claims]


class Writer:
    def __call__(self, limit: int) -> str:
        return write(limit)


@validate_call
def checked(limit: int = Field(le=10)) -> str:
    """Refuse, and then write."""
    return str(limit)


@pytest.mark.parametrize(
    ("function", "arguments", "ran"),
    [
        (write, {"limit": 50}, True), (write_async, {"limit": 50}, True),
        (Writer(), {"limit": 50}, True), (partial(write), {"limit": 50}, True),
        (checked, {"limit": 50}, None), (write, {"limt": 5}, None), (write_async, {}, None),
    ],
)  # fmt: skip
async def test_a_function_has_run_when_its_code_was_reached(
    function: Any, arguments: dict[str, int], ran: bool | None
) -> None:
    """Not where its signature or `validate_call` refused; the record is the tool's own error.

    Each does its work and then raises the very words that would refuse its arguments.
    """
    records, service = Records(), SyncScripted()
    reflected = reflecting(client=service, recorder=records)(function)

    async def called() -> None:
        answered = reflected(**arguments)
        await answered

    with pytest.raises((ValidationError, TypeError)):
        await called()
    assert service.said_of_the_run == [ran]
    assert [e.error.details for e in records.executions if e.error] == [{}]


class Hanging:
    """A service that answers nobody until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked = 0

    def suggest(
        self, execution: Execution, *, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        del execution, annotations
        self.asked += 1
        self.let_go.wait()
        return answer()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    service = Hanging()
    yield service
    service.let_go.set()


def test_a_hanging_service_takes_no_thread_of_the_event_loop(hanging: Hanging) -> None:
    """Tools still find the loop's threads, and the loop ends while questions are unanswered."""
    policy = ReflectionPolicy(suggest_timeout_s=0.2)

    @reflecting(client=hanging, recorder=Records(), policy=policy)
    async def fails() -> None:
        raise ValueError("no")

    async def main() -> None:
        calls = [asyncio.create_task(fails()) for _ in range(70)]
        await asyncio.sleep(0)  # all of them are asked about now
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 60) == 1
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert {str(error) for error in ended} == {"no"}

    asyncio.run(main())  # would wait for the loop's own threads
    assert hanging.asked == 70
