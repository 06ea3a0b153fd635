"""Before the call, and how calls are handled: the gateway, real servers and the true service."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftercall import Recorder
from aftercall.adapters import before_call
from aftercall.adapters.before_call import looks_right
from aftercall.reflection import ReflectionPolicy
from tests.gateway.conftest import TIME_SERVER, OpenGateway
from tests.gateway.results import texts
from tests.service.running_service import RunningService, hashing_settings, running

NOW = "get_current_time"
WRONG = {"tz": "Europe/Warsaw"}
EXTRA = {"timezone": "UTC", "format": "iso"}
SAID = '"format" is no parameter of this tool'
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"}, "b": {"enum": ["x", "y"]}, "c": {"type": ["string", "null"]},
        "d": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["a"],
}  # fmt: skip


@pytest.fixture
def true_service(tmp_path: Path) -> Iterator[RunningService]:
    """A service on an empty folder."""
    with running(hashing_settings(tmp_path)) as started:
        yield started


@pytest.fixture
def service_url(true_service: RunningService) -> str:
    """Takes the contract server's place."""
    return true_service.url


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(before_call, "TIMEOUT_S", 30)


def told(service: RunningService, path: str) -> Any:
    """What the service answers."""
    return service.client.get(path).json()


def handled(**own: Any) -> dict[str, Any]:
    """The time server with its handling."""
    return {"time": {**TIME_SERVER, "aftercall": own}}


@pytest.mark.real
async def test_what_the_schema_refuses_is_mended_before_the_call_and_said(
    open_gateway: OpenGateway, true_service: RunningService, recorder: Recorder
) -> None:
    """The tool is called once, rightly; the result says what was changed, in words and in data.

    What it would pass over in silence is said, too.
    """
    async with open_gateway(handled()) as client:
        result = await client.call_tool_mcp(NOW, WRONG)
        silent = await client.call_tool_mcp(NOW, EXTRA)
    await asyncio.to_thread(recorder.flush)
    assert result.structured_content["timezone"] == "Europe/Warsaw"
    assert "Aftercall repaired this call before it was made" in texts(result)[-1]
    facts = result.meta["aftercall"]
    assert (facts["repaired"], facts["note"]) == (True, "repaired before the call")
    assert [each["op"] for each in facts["changes"]] == ["remove", "add"]
    assert SAID in texts(silent)[-1]
    assert silent.meta["aftercall"]
    assert told(true_service, "/status")["executions"] == 2


MODES: dict[str, tuple[dict[str, Any], bool, str]] = {
    "lossy": ({"note": "lossy"}, False, "timezone"),
    "advise": ({"mode": "advise"}, True, "Suggestions from Aftercall"),
    "shadow": ({"mode": "shadow"}, True, "timezone"),
    "one": ({"mode": "off", "tools": {NOW: {"mode": "repair", "note": "never"}}}, False,
            "timezone"),
}  # fmt: skip
"""Of servers: how they are handled, whether a wrong call fails, and what its result says last."""


@pytest.mark.real
async def test_a_server_and_a_tool_have_modes_and_notes_of_their_own(
    open_gateway: OpenGateway, true_service: RunningService, recorder: Recorder
) -> None:
    """What the caller sees, and what is recorded: all but the calls of the one that is off."""
    servers = {name: handled(**own)["time"] for name, (own, _, _) in MODES.items()}
    async with open_gateway(servers) as client:
        for name, (_, is_error, last) in MODES.items():
            result = await client.call_tool_mcp(f"{name}_{NOW}", WRONG)
            assert result.is_error is is_error, name
            assert last in texts(result)[-1], name
            assert "repaired this call" not in texts(result)[-1], name
        assert (await client.call_tool_mcp("one_convert_time", WRONG)).is_error
        silent = [await client.call_tool_mcp(f"{name}_{NOW}", EXTRA) for name in ("advise", "one")]
    assert [SAID in texts(each)[-1] for each in silent] == [True, False]
    await asyncio.to_thread(recorder.flush)
    assert told(true_service, "/status")["executions"] == len(MODES) + len(silent)


@pytest.mark.real
async def test_what_would_have_been_done_in_shadow_is_compared_with_what_was(
    open_gateway: OpenGateway, true_service: RunningService, recorder: Recorder
) -> None:
    """The agent mends one call just so and leaves another; nothing is done about either."""
    right = {"timezone": "Europe/Warsaw"}
    async with open_gateway(handled(mode="shadow")) as client:
        for parameters in (WRONG, right, {"zone": "UTC"}, {"timezone": "Asia/Tokyo"}, WRONG):
            await client.call_tool_mcp(NOW, parameters)
    await asyncio.to_thread(recorder.flush)
    await asyncio.to_thread(true_service.learned)
    shadow = told(true_service, "/stats/reflection")["shadow"]
    assert shadow["watched"] == {"successes": 2, "failures": 3}
    assert shadow["repairedBefore"]["failures"] >= 2
    assert shadow["repairedAfter"] >= 2
    assert shadow["same"] == {"successes": 1, "failures": 0}
    page = true_service.client.get("/dashboard/suggestions").text
    assert "repaired after it failed, as the agent then did" in page


@pytest.mark.real
@pytest.mark.parametrize(
    ("policy", "meta", "recorded"),
    [
        (ReflectionPolicy(disabled_agents=frozenset({"lone"})), {"aftercall/agent": "lone"}, 1),
        (ReflectionPolicy(unrecorded_agents=frozenset({"lone"})), {"aftercall/agent": "lone"}, 0),
        (ReflectionPolicy(), {"aftercall/record": False}, 0),
    ],
)
async def test_an_agent_that_wants_no_reflection_or_no_record_has_its_calls_made_as_they_are(
    open_gateway: OpenGateway,
    true_service: RunningService,
    recorder: Recorder,
    policy: ReflectionPolicy,
    meta: dict[str, Any],
    recorded: int,
) -> None:
    """They are neither mended before nor after."""
    async with open_gateway(handled(), policy) as client:
        result = await client.call_tool_mcp(NOW, WRONG, meta=meta)
    await asyncio.to_thread(recorder.flush)
    assert result.is_error
    assert told(true_service, "/status")["executions"] == recorded


@pytest.mark.real
async def test_what_a_server_says_without_calling_it_an_error_is_one(
    open_gateway: OpenGateway, true_service: RunningService, recorder: Recorder
) -> None:
    """Its words stay as they are; the pattern that read them is kept."""
    async with open_gateway(handled(errorPattern='"timezone": "UTC"')) as client:
        result = await client.call_tool_mcp(NOW, {"timezone": "UTC"})
    await asyncio.to_thread(recorder.flush)
    assert not result.is_error
    assert '"timezone": "UTC"' in texts(result)[0]
    await asyncio.to_thread(true_service.learned)
    totals = told(true_service, "/stats/totals")["windows"][0]["totals"]
    assert (totals["successes"], totals["failures"]) == (0, 1), totals


@pytest.mark.real
async def test_the_figures_of_the_dashboard_are_those_of_who_looks_on(
    open_gateway: OpenGateway, true_service: RunningService, recorder: Recorder
) -> None:
    """A hundred calls: right ones, repaired before and after they were made, and failed ones."""
    kinds: list[tuple[dict[str, Any], str, int]] = [
        ({"timezone": "UTC"}, "right", 50), (WRONG, "before", 25),
        ({"timezone": "europe/berlin"}, "after", 15), ({"timezone": "Nowhere/AtAll"}, "failed", 10),
    ]  # fmt: skip
    seen = Counter[str]()
    async with open_gateway({"time": TIME_SERVER}) as client:
        for parameters, _, count in kinds:
            for _ in range(count):
                result = await client.call_tool_mcp(NOW, parameters)
                facts = (result.meta or {}).get("aftercall", {})
                is_before = facts.get("note") == "repaired before the call"
                repaired = "before" if is_before else "after"
                well = repaired if facts.get("repaired") else "right"
                ill = "blocked" if facts.get("blocked") else "failed"
                seen[ill if result.is_error else well] += 1
    await asyncio.to_thread(recorder.flush)
    await asyncio.to_thread(true_service.learned)
    assert all(seen[kind] for _, kind, _ in kinds), seen
    figures = told(true_service, "/stats/reflection")
    made = seen.total() - seen["blocked"]  # a call that is not made is none
    first, tasks = figures["firstAttempts"], figures["tasks"]
    assert first == {"successes": seen["right"], "failures": made - seen["right"]}
    assert tasks == {"successes": made - seen["failed"], "failures": seen["failed"]}, seen
    assert figures["repairedBefore"] == {"successes": seen["before"], "failures": 0}
    assert figures["retries"]["successes"] == seen["after"]
    page = true_service.client.get("/dashboard/suggestions").text
    assert f"{seen['before']} repairs before the call and {seen['after']} repair" in page


@pytest.mark.real
async def test_a_loop_ends_before_the_call(
    open_gateway: OpenGateway, true_service: RunningService, recorder: Recorder
) -> None:
    """Five failures with one error; then the call is not made, and another one is."""
    async with open_gateway(handled()) as client:
        for _ in range(5):
            await client.call_tool_mcp(NOW, {"timezone": "Nowhere/AtAll"})
        await asyncio.to_thread(recorder.flush)
        await asyncio.to_thread(true_service.learned)
        stopped = await client.call_tool_mcp(NOW, {"timezone": "Nowhere/AtAll"})
        other = await client.call_tool_mcp(NOW, {"timezone": "UTC"})
    assert stopped.is_error
    assert "did not make this call" in texts(stopped)[0]
    assert "failed 5 times in this session" in texts(stopped)[0]
    assert not other.is_error


@pytest.mark.parametrize(
    ("parameters", "right"),
    [
        ({"a": 1}, True), ({"a": 1.0}, True), ({"a": 1, "b": "x", "c": None, "d": "x"}, True),
        ({}, False), ({"a": "1"}, False), ({"a": True}, False), ({"a": 1, "b": "z"}, False),
        ({"a": 1, "e": 1}, False), ({"a": 1, "c": 2}, False), ({"a": 1, "d": 3}, False),
    ],
)  # fmt: skip
def test_only_calls_that_look_wrong_are_asked_about(parameters: Any, right: bool) -> None:
    """By its schema, and by names that this does not have; one that cannot be read says nothing."""
    assert looks_right(SCHEMA, parameters) is right
    assert not looks_right({"properties": {"a": {"type": 7}}}, {"a": 1})
    assert looks_right(None, parameters) is not bool(parameters)
