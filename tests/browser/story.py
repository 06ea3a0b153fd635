"""What the browser tests look at: a few days of calls, told over HTTP, some of them hostile.

Every hostile text stays text on every page: a test that sees one of its effects fails.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import uuid4

import httpx2

from tests.service.running_service import ServeProcess, eventually, finished

SCRIPT = "<script>window.pwned=1</script>"
IMAGE = "<img src=x onerror=window.pwned=2>"
TEMPLATE = "{{7*7}} ${7*7} {{constructor.constructor('window.pwned=3')()}}"
QUOTES = "\"'`;--><!--</textarea></title></script>&lt;b&gt;"
LONG = "averyveryverylongword" * 12

HOSTILE_TOOL = f"evil {SCRIPT}"
HOSTILE_SERVER = f"srv{IMAGE}"
HOSTILE_AGENT = f"agent {IMAGE} {QUOTES}"
HOSTILE_FAILURE = {
    "agent": HOSTILE_AGENT,
    "serverName": HOSTILE_SERVER,
    "context": f"{SCRIPT} {IMAGE} {TEMPLATE}",
    "parameters": {f"{IMAGE}": SCRIPT, "text": TEMPLATE, "long": LONG, "quotes": QUOTES},
    "error": {
        "type": f"Error{SCRIPT}",
        "message": f"No {IMAGE} {SCRIPT} {TEMPLATE} {QUOTES} {LONG}",
    },
}
DOTS_AGENT = "../../executions"
DOTS_TOOL = ".."

SEARCH_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "topK": {"type": "integer", "minimum": 1, "maximum": 10},
    },
    "required": ["query"],
}


@dataclass
class Teller:
    """Records calls of one service."""

    client: httpx2.Client
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    told: list[dict[str, Any]] = field(default_factory=list)

    def call(self, tool: str, *, hours_ago: float = 1.0, **fields: Any) -> dict[str, Any]:
        """One call, kept until `send`; a success unless `error` says what went wrong."""
        body: dict[str, Any] = {
            "executionId": str(uuid4()),
            "timestamp": (self.now - timedelta(hours=hours_ago)).isoformat(),
            "agent": "planner",
            "serverName": "library",
            "toolName": tool,
            "parameters": {"query": "reflection"},
            "durationMs": 120.0,
            "outcome": "failure" if "error" in fields else "success",
            **fields,
        }
        self.told.append(body)
        return body

    def send(self) -> None:
        """POST what was told since the last time, and wait until it was learned."""
        for start in range(0, len(self.told), 100):
            batch = self.told[start : start + 100]
            _checked(self.client.post("/executions", json=batch))
        self.told.clear()
        eventually(lambda: self.client.get("/status").json()["pendingIndexing"] == 0)

    def repaired(self, failed: dict[str, Any], right: dict[str, Any]) -> None:
        """Ask about a failure that was sent, follow the suggestion, and tell how that went."""
        question = {key: value for key, value in failed.items() if key != "outcome"}
        answer = _checked(self.client.post("/suggest", json={"execution": question}))
        suggestions = answer.json()["suggestions"]
        followed = {"suggestionId": suggestions[0]["suggestionId"]} if suggestions else {}
        after = datetime.fromisoformat(failed["timestamp"]) + timedelta(seconds=20)
        same = {key: failed[key] for key in ("agent", "serverName", "sessionId")}
        again = {"timestamp": after.isoformat(), "attempt": 2, "repairOf": failed["executionId"]}
        self.call(failed["toolName"], parameters=right, **same, **again, **followed)


def too_many() -> dict[str, str]:
    return {"type": "ValidationError", "message": "Invalid parameter: topK must be <= 10"}


def tell_story(service: ServeProcess, data_dir: str) -> None:
    """Several tools and agents, failures, repairs, hostile words; and a nightly run."""
    tool = {"serverName": "library", "name": "search", "description": "Searches the library.",
            "inputSchema": SEARCH_SCHEMA}  # fmt: skip
    with httpx2.Client(base_url=service.url, timeout=30) as client:
        _checked(client.put("/tools/library/search", json=tool))
        teller = Teller(client)
        _everyday(teller)
        _hostile(teller)
        teller.send()
        _repairs(teller)
        teller.send()
    status, _, err = finished("nightly", "--data-dir", data_dir)
    if status != 0:
        raise RuntimeError(f"the nightly run failed: {err}")


def _everyday(teller: Teller) -> None:
    late = {"type": "TimeoutError", "message": "no answer within 30 s"}
    for number in range(90):
        hours, agent = 0.2 + number * 1.9, ("planner", "librarian", "mailer")[number % 3]
        web = {"agent": agent, "serverName": "web"}
        teller.call("search", hours_ago=hours, agent=agent, durationMs=80.0 + number,
                    toolVersion="1.0" if hours > 48 else "2.0")  # fmt: skip
        if number % 2:
            url = {"url": f"https://example.org/{number}"}
            teller.call("fetch_page", hours_ago=hours, parameters=url,
                        durationMs=300.0 + 9 * number, **web)  # fmt: skip
        if number % 7 == 0:
            teller.call("fetch_page", hours_ago=hours + 0.1, parameters={"url": "example"},
                        error=late, durationMs=30_000.0, **web)  # fmt: skip
    for number in range(8):
        error = {"type": "PermissionError", "message": f"Access denied for note n-{number}"}
        note = {"note": f"n-{number}"}
        teller.call("archive_note", hours_ago=2 + number, agent="librarian", parameters=note,
                    error=error)  # fmt: skip


def _hostile(teller: Teller) -> None:
    for number in range(6):
        teller.call(HOSTILE_TOOL, hours_ago=1 + number, **HOSTILE_FAILURE)
    teller.call(HOSTILE_TOOL, agent=HOSTILE_AGENT, serverName=HOSTILE_SERVER)
    teller.call(LONG, agent=LONG[:120], serverName=None, parameters={})
    teller.call(DOTS_TOOL, agent=DOTS_AGENT, serverName=None, parameters={})
    teller.call("=cmd()", agent="@sum", serverName="-1+1", parameters={})


def _repairs(teller: Teller) -> None:
    failed = [
        teller.call("search", hours_ago=3 + number, sessionId=f"s-{number}", error=too_many(),
                    parameters={"query": f"subject {number}", "topK": 50})
        for number in range(12)
    ]  # fmt: skip
    teller.send()
    for number, each in enumerate(failed[:9]):
        teller.repaired(each, {"query": f"subject {number}", "topK": 10})


def _checked(answer: httpx2.Response) -> httpx2.Response:
    """The answer, once it is a success; what the service says else."""
    if not answer.is_success:
        raise RuntimeError(f"{answer.request.url}: {answer.status_code} {answer.text}")
    return answer


AXES = (
    ("page_reader", ["transport", "extraction"], 6),
    ("page_reader", ["HTTP transport", "extraction"], 3),
    ("mail_sender", ["delivery", "formatting"], 4),
    ("report_maker", ["formatting", "charting"], 2),
    ("report_maker", ["charting", "extraction"], 1),
    (HOSTILE_TOOL, [f"axis {SCRIPT}", f"other {IMAGE}"], 4),
)


@cache  # files share a service
def tell_referrals(url: str) -> None:
    """Record them once, and wait until they are learned."""
    with httpx2.Client(base_url=url, timeout=30) as client:
        teller = Teller(client)
        for tool, axes, times in AXES:
            details = {
                "boundaryAxes": axes, "observedTaskShape": " + ".join(axes),
                "suggestedSplit": axes, "evidence": f"asked for {axes[0]} and {axes[1]} at once",
            }  # fmt: skip
            error = {"type": "wrong_tool_boundary", "message": f"that is more than {tool} does"}
            for number in range(times):
                page = {"url": f"https://example.org/{number}"}
                teller.call(tool, hours_ago=1 + 5 * number, serverName="web", parameters=page,
                            error={**error, "details": details})  # fmt: skip
        teller.send()


TWIN = "twin_tool"

NEVER_CALLED = "library/never_called"


@cache
def tell_mending(url: str) -> None:
    """Record them once, and wait until they are learned."""
    with httpx2.Client(base_url=url, timeout=30) as client:
        client.put(
            f"/tools/{NEVER_CALLED.replace('/', '%2F')}",
            json={"serverName": "library", "name": "never_called", "version": "1.2.0"},
        ).raise_for_status()
        teller = Teller(client)
        for number in range(4):
            asked, context = {"query": f"topic {number}"}, "find what there is on reflection"
            who = {"agent": ("librarian", "mailer")[number % 2], "sessionId": f"mended-{number}",
                   "traceId": f"{number + 1:032x}"}  # fmt: skip
            teller.call("search", hours_ago=2.0 + number, context=context, error=too_many(),
                        parameters={**asked, "topK": 90}, **who)  # fmt: skip
            teller.call("search", hours_ago=1.99 + number, attempt=2,
                        parameters={**asked, "topK": 10}, **who)  # fmt: skip
        for server in ("east", "west"):
            teller.call(TWIN, serverName=server)
        teller.send()
