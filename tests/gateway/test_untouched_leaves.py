"""Generated calls and arbitrary answers: what no change names comes out as it went in."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import ToolResult

from aftercall.adapters.fastmcp import ReflectionMiddleware
from aftercall.json_patch import apply, diff, same_json, value_at_pointer
from aftercall.json_values import JsonObject
from aftercall.leaves import leaves_by_path
from aftercall.models import Change, CheckResponse, SuggestResponse
from aftercall.models.calls import Verdict
from aftercall.redaction import DEFAULT_REDACTOR, is_redacted
from aftercall.reflection import call_with_reflection, call_with_reflection_sync
from tests.sdk import trees
from tests.sdk.scripted_advice import FAST, AsyncScripted, Records, SyncScripted, answer, suggestion

SHARE, ALL = 1_000, 10_000
"""Calls in each test run, and before a release; each at depth 1 to 5."""


@dataclass
class Trial:
    """A call and an answer about it, drawn by number."""

    number: int
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.number)  # noqa: S311  # generates test data
        self.call = trees.call(self.rng, self.number % 5)
        if self.rng.random() < 0.3:
            self.call["login"] = {"password": f"hunter2-{self.number}", "for": "  me\n"}
        self.seen = DEFAULT_REDACTOR.parameters("tool", self.call)
        self.operations = trees.operations(self.rng, self.seen)
        if self.rng.random() < 0.5:  # as a service makes them, of a call and a mended one
            self.operations = diff(self.seen, apply(self.seen, self.operations))

        self.changes = [
            Change(op=each.op, path=each.path, from_=each.before, value=each.value, reason="r")
            for each in self.operations
        ]
        if self.rng.random() < 0.05:  # now and then the answer is about another call
            self.changes.append(Change(op="remove", path="/not/there", reason="r"))

    @property
    def is_checked(self) -> bool:
        """Whether the call is repaired before it is made, where that is asked."""
        return self.number % 3 == 0

    def check(self, sent: JsonObject) -> None:
        """Hold what a tool was called with against the call, leaf by leaf."""
        assert not is_redacted(sent)
        for path, value in leaves_by_path(self.call).items():
            place = trees.named_by(self.call, path, self.operations)
            if place is not None and path:
                assert same_json(value_at_pointer(sent, place), value), (self.number, path)


class Refusing:
    """A tool that refuses its first call, and keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[JsonObject] = []

    def run(self, parameters: JsonObject) -> str:
        self.calls.append(parameters)
        if len(self.calls) == 1:
            raise ToolError("something is wrong")
        return "done"

    async def run_async(self, parameters: JsonObject) -> str:
        return self.run(parameters)


def through_sync(trial: Trial) -> list[JsonObject]:
    """By the synchronous driver."""
    tool = Refusing()
    call_with_reflection_sync(
        tool.run, client=SyncScripted(said(trial)), recorder=Records(), policy=FAST,
        tool_name="tool", parameters=trial.call, agent="a",
    )  # fmt: skip
    return tool.calls


async def through_async(trial: Trial) -> list[JsonObject]:
    """By the asynchronous driver."""
    tool = Refusing()
    await call_with_reflection(
        tool.run_async, client=AsyncScripted(said(trial)), recorder=Records(), policy=FAST,
        tool_name="tool", parameters=trial.call, agent="a",
    )  # fmt: skip
    return tool.calls


def said(trial: Trial) -> SuggestResponse:
    return answer(suggestion(*trial.changes))


class Upstream(Middleware):
    """Stands where the gateway calls a server: keeps the arguments; refuses the first call."""

    def __init__(self) -> None:
        self.tool = Refusing()

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, ToolResult]
    ) -> ToolResult:
        del call_next
        return ToolResult(content=self.tool.run(context.message.arguments or {}))


class Service(AsyncScripted):
    """Answers about the trial of the moment: every third call is repaired before it is made."""

    trial: Trial

    async def suggest(self, *_question: Any, **_more: Any) -> SuggestResponse:
        return answer() if self.trial.is_checked else said(self.trial)

    async def check(self, *_question: Any, **_more: Any) -> CheckResponse:
        verdict: Verdict = "repair" if self.trial.is_checked else "pass"
        return CheckResponse(verdict=verdict, changes=self.trial.changes)


async def through_gateway(trials: list[Trial]) -> list[list[JsonObject]]:
    """By the middleware of the gateway, before the call and after it, over MCP."""
    service: Any = Service()
    gateway: FastMCP[Any] = FastMCP("gateway")
    gateway.add_middleware(
        ReflectionMiddleware(client=service, check=service, recorder=Records(), policy=FAST)
    )
    gateway.add_middleware(upstream := Upstream())
    calls = []
    async with Client(gateway) as client:
        for service.trial in trials:
            upstream.tool = Refusing()
            await client.call_tool_mcp("tool", service.trial.call)
            calls.append(upstream.tool.calls)
    return calls


def hold(trials: list[Trial], calls: list[list[JsonObject]]) -> None:
    """Hold all that was sent against the calls; most answers were followed, so it is a test."""
    repaired = 0
    for trial, sent in zip(trials, calls, strict=True):
        others = [each for each in sent if not same_json(each, trial.call)]
        repaired += bool(others)
        for each in others:
            trial.check(each)
    assert repaired > len(trials) / 2


@pytest.mark.parametrize(
    "number", [SHARE, pytest.param(ALL, marks=[pytest.mark.prove, pytest.mark.timeout(3600)])]
)
@pytest.mark.parametrize("way", ["sync", "async", "gateway"])
async def test_a_value_that_no_change_names_is_never_altered(way: str, number: int) -> None:
    """Calls at depth 1 to 5, secrets among them; answers with any changes, fitting or not."""
    trials = [Trial(n) for n in range(number)]
    if way == "sync":
        calls = await asyncio.to_thread(lambda: [through_sync(trial) for trial in trials])
    elif way == "async":
        calls = [await through_async(trial) for trial in trials]
    else:
        calls = await through_gateway(trials)
    hold(trials, calls)
