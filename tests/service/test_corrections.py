"""Users' corrections over HTTP: whose they are, that each counts once, and what is refused."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.service.fitness_client import fresh
from tests.service.running_service import DAY, RunningService, execution
from tests.service.test_bad_input import error_of

SAID = "that doesn't look like a movie list"


def correct(service: RunningService, **fields: Any) -> httpx2.Response:
    """POST /corrections."""
    return service.client.post("/corrections", json={"text": SAID, **fields})


def corrected(service: RunningService, **fields: Any) -> dict[str, Any]:
    """The answer to a correction that is taken."""
    answer = correct(service, **fields)
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.json()
    return told


def listed(service: RunningService, **query: Any) -> list[dict[str, Any]]:
    """GET /corrections."""
    answer = service.client.get("/corrections", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["corrections"]
    return found


def test_a_correction_of_a_recorded_call_is_tied_to_its_tool(service: RunningService) -> None:
    """It is listed at once, and under its tool as soon as it was learned from."""
    call = execution(toolName=fresh("find_films"))
    service.record(call)
    correction_id = str(uuid4())
    told = corrected(
        service, correctionId=correction_id, executionId=call["executionId"],
        kind="wrong_tool_boundary", boundaryAxes=["transport", "HTML-Lesen \u2603"], agent="clerk",
        timestamp=f"{DAY}T15:30:00.250+01:00",
    )  # fmt: skip
    assert told == {
        "correctionId": correction_id, "executionId": call["executionId"],
        "serverName": "rag-server", "toolName": call["toolName"], "tied": True, "duplicate": False,
    }  # fmt: skip
    [found] = [each for each in listed(service) if each["correctionId"] == correction_id]
    service.learned()
    [counted] = listed(service, toolName=call["toolName"], serverName="rag-server")
    assert found | {"serverName": "rag-server", "toolName": call["toolName"]} == counted
    assert counted == {
        "correctionId": correction_id, "executionId": call["executionId"],
        "serverName": "rag-server", "toolName": call["toolName"],
        "at": f"{DAY}T14:30:00.250000Z", "kind": "wrong_tool_boundary", "text": SAID,
        "boundaryAxes": ["transport", "HTML-Lesen \u2603"], "agent": "clerk",
    }  # fmt: skip
    assert listed(service, toolName=call["toolName"]) == []


def test_a_correction_may_come_before_its_call(service: RunningService) -> None:
    """It is kept, says so, and counts for the tool once the call is recorded."""
    call = execution(toolName=fresh("find_films"))
    told = corrected(service, executionId=call["executionId"])
    assert (told["tied"], told["toolName"], told["serverName"]) == (False, None, None)
    service.learned()
    service.record(call)
    again = corrected(service, executionId=call["executionId"], correctionId=told["correctionId"])
    assert again == told | {
        "tied": True, "toolName": call["toolName"], "serverName": "rag-server", "duplicate": True,
    }  # fmt: skip
    service.learned()
    [counted] = listed(service, toolName=call["toolName"], serverName="rag-server")
    assert counted["correctionId"] == told["correctionId"]
    at = datetime.fromisoformat(counted["at"])
    assert datetime.now(UTC) - timedelta(minutes=5) < at <= datetime.now(UTC)


def test_a_session_stands_for_its_latest_call(service: RunningService) -> None:
    """By the calls' own times; narrowed by tool and server where they are named."""
    session, tool = fresh("session"), fresh("tool")
    early, late, other = (
        execution(sessionId=session, timestamp=f"{DAY}T14:3{minute}:00Z", toolName=name)
        for minute, name in ((1, tool), (5, tool), (7, "else"))
    )
    service.record([late, early, other])
    assert corrected(service, sessionId=session)["executionId"] == other["executionId"]
    narrowed = corrected(service, sessionId=session, toolName=tool, serverName="rag-server")
    assert narrowed["executionId"] == late["executionId"]
    assert narrowed["tied"] is True
    message = error_of(correct(service, sessionId=session, toolName="never"), 404, "not_found")
    assert "of tool 'never'" in message


def test_a_session_of_which_nothing_is_recorded_is_404_with_the_cure(
    service: RunningService,
) -> None:
    """Flush first, or name the execution; nothing is kept."""
    said = f"nothing of this is kept: {uuid4()}"
    message = error_of(correct(service, sessionId="s-nowhere", text=said), 404, "not_found")
    assert "flush the recorder" in message
    assert "executionId" in message
    assert said not in [each["text"] for each in listed(service, limit=100)]


def test_a_correction_sent_twice_stays_with_its_first_call(service: RunningService) -> None:
    """Also when the session has gone on since; it is listed once."""
    session = fresh("session")
    first, second = (
        execution(sessionId=session, timestamp=f"{DAY}T14:3{minute}:00Z") for minute in (1, 5)
    )
    service.record(first)
    correction_id = str(uuid4())
    told = corrected(service, sessionId=session, correctionId=correction_id)
    service.record(second)
    again = corrected(service, sessionId=session, correctionId=correction_id.upper())
    assert again == told | {"duplicate": True}
    assert again["executionId"] == first["executionId"]
    by_id = corrected(service, executionId=first["executionId"], correctionId=correction_id)
    assert by_id == again
    found = [each["correctionId"] for each in listed(service, limit=100)]
    assert found.count(correction_id) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"text": "something else"},
        {"kind": "wrong_tool_boundary"},
        {"boundaryAxes": ["transport"]},
        {"agent": "another"},
        {"timestamp": f"{DAY}T14:30:01Z"},
        {"executionId": str(uuid4())},
        {"executionId": None, "sessionId": "another"},
    ],
)
def test_the_same_id_with_other_content_is_409(
    service: RunningService, changed: dict[str, Any]
) -> None:
    """And the first stays as it was."""
    fields: dict[str, Any] = {
        "correctionId": str(uuid4()), "executionId": str(uuid4()), "timestamp": f"{DAY}T14:30Z",
    }  # fmt: skip
    corrected(service, **fields)
    message = error_of(correct(service, **{**fields, **changed}), 409, "conflict")
    assert fields["correctionId"] in message
    assert corrected(service, **fields)["duplicate"] is True


def test_racing_corrections_of_one_id_count_once(service: RunningService) -> None:
    """One of them is the first, and all tell of the same."""
    fields = {"correctionId": str(uuid4()), "executionId": str(uuid4())}
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(lambda _: corrected(service, **fields), range(16)))
    assert sorted(each["duplicate"] for each in told) == [False] + [True] * 15
    assert len({each["executionId"] for each in told}) == 1


def test_what_does_not_fit_clock_and_names_is_told(service: RunningService) -> None:
    """A time of tomorrow is refused; a server alone is no tool."""
    answer = correct(service, executionId=str(uuid4()), timestamp="2150-01-01T00:00:00Z")
    assert "check the clock of the sender" in error_of(answer, 409, "refused")
    answer = service.client.get("/corrections", params={"serverName": "s"})
    assert "a server alone is no tool" in error_of(answer, 404, "not_found")


def test_the_latest_corrections_are_listed_first(service: RunningService) -> None:
    """By arrival, at most so many."""
    told = [corrected(service, executionId=str(uuid4()))["correctionId"] for _ in range(3)]
    assert [each["correctionId"] for each in listed(service, limit=2)] == told[:0:-1]
