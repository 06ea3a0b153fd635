"""Golden answers: what the service answers to fixed histories over HTTP, frozen.

A story is a list of requests in `data/NAME.history.jsonl`, `[name, method, path, body]` a line.
Where there is a name, the answer is frozen in `data/NAME.answers.jsonl`; the others only tell the
service something. `LEARN` waits until everything is usable, `NIGHTLY` runs the nightly job. In a
text, `@-90` is the time 90 seconds before the story's moment and `$name/a/0/b$` is a value out of
an earlier answer. Only the HTTP contract is used, so that everything below may be rewritten.

    python -m tests.golden --write    # freeze the answers of this checkout; look at the diff

The stories: `demo` (700 calls of the simulated history with its tools, promotions, marks,
corrections, questions with their outcomes), `bfcl` and `servers` (damaged calls after a history of
other sessions, with the tools of bfcl-eval, Apache 2.0, and of the reference MCP servers, MIT),
and `events` (each kind of event, and what is refused).

What tolerance means. Statuses, texts, actions, changed values, whole numbers, the order and the
number of entries are equal exactly. Other numbers (confidences, scores, similarities, weights) may
differ by `ABSOLUTE` or by `RELATIVE` of the larger one, whichever is more: weights fade with the
minutes since the call, and vectors are kept in half precision. Neighbours in a list whose scores
are within the tolerance, or that have as many calls, may stand in either order. Ids that the
service draws, times, durations of its own and versions are not compared.
"""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from workbench.in_process import InProcessClient, in_process

DATA = Path(__file__).parent / "data"
ABSOLUTE, RELATIVE = 0.005, 0.01
_LEARNED_S = 60.0

Json = Any
Answers = dict[str, Json]

_OWN = {"tookMs", "uptimeS", "indexingLagS", "schemaHash", "vectors"}
"""Fields of which only the presence counts."""
_SCORES = ("confidence", "similarity", "score", "weight", "priority")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)|(?<=changed on )\d{4}-\d\d-\d\d"
)
_AGO = re.compile(r"@(ns)?(-\d+(?:\.\d+)?)")
_VALUE = re.compile(r"\$([^/$]+)/([^$]+)\$")


def names() -> list[str]:
    """The stories."""
    return sorted(file.name.split(".")[0] for file in DATA.glob("*.history.jsonl"))


def frozen(story: str) -> Answers:
    """The answers as they were written."""
    lines = (DATA / f"{story}.answers.jsonl").read_text(encoding="utf-8").splitlines()
    return dict(json.loads(line) for line in lines)


def freeze(story: str, answers: Answers) -> None:
    """Write the answers, one a line."""
    lines = (json.dumps(each, separators=(",", ":")) for each in answers.items())
    (DATA / f"{story}.answers.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


async def play(story: str) -> Answers:
    """Tell a new service the story; its answers, normalised."""
    text = (DATA / f"{story}.history.jsonl").read_text(encoding="utf-8")
    known = set(_ID.findall(text))
    async with (
        in_process(embedder="hashing") as service,
        httpx2.AsyncClient(
            base_url="http://127.0.0.1", transport=service.transport, timeout=60
        ) as http,
    ):
        teller = _Teller(service, http)
        for line in text.splitlines():
            await teller.step(*json.loads(line))
    return {name: normal(answer, known) for name, answer in teller.answers.items()}


class _Teller:
    """Sends the requests of one story."""

    def __init__(self, service: InProcessClient, http: httpx2.AsyncClient) -> None:
        self.answers: Answers = {}
        self._service = service
        self._http = http
        # The top of an hour some hours ago: which calls share an hour never changes.
        self._moment = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(
            hours=5
        )

    async def step(self, name: str | None, method: str, path: str, body: Json) -> None:
        if method == "LEARN":
            return await self._learned()
        if method == "NIGHTLY":
            await self._service.run_night()
            return None
        asked = f"{method} {path}"
        try:
            path, body = self._filled(path), self._filled(body)
        except LookupError:  # an earlier answer has no such value; the comparison says so there
            if name is not None:
                self.answers[name] = {"asked": asked, "answer": "an earlier answer is missing"}
            return None
        answer = await self._asked(method, path, body)
        if name is not None:
            is_json = "json" in answer.headers.get("content-type", "")
            said = answer.json() if is_json else answer.text
            self.answers[name] = {"asked": asked, "status": answer.status_code, "answer": said}
        elif answer.status_code >= 400:
            raise AssertionError(f"{asked}: {answer.status_code} {answer.text[:500]}")
        elif path == "/executions" and (refused := answer.json()["rejected"]):
            raise AssertionError(f"{asked}: {refused[:3]}")
        return None

    async def _asked(self, method: str, path: str, body: Json) -> httpx2.Response:
        """The answer; a statistic is asked for again until it says that it is complete."""
        deadline = time.monotonic() + _LEARNED_S
        while True:
            sent = {} if body is None else {"json": body}
            answer = await self._http.request(method, path, **sent)
            if '"isComplete":false' not in answer.text or time.monotonic() > deadline:
                return answer
            await asyncio.sleep(0.005)

    async def _learned(self) -> None:
        """Wait until all is usable, and what tools say of their boundaries is clustered."""
        deadline = time.monotonic() + _LEARNED_S
        for path, field in (("/status", "pendingIndexing"), ("/boundaries?limit=1", "unclustered")):
            while (await self._http.get(path)).json()[field]:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{field} within {_LEARNED_S} s")
                await asyncio.sleep(0.05)  # between two questions

    def _filled(self, value: Json) -> Json:
        """With times and values of earlier answers in their places."""
        if isinstance(value, dict):
            return {key: self._filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if not isinstance(value, str):
            return value
        if ago := _AGO.fullmatch(value):
            at = self._moment + timedelta(seconds=float(ago[2]))
            return str(int(at.timestamp() * 1e9)) if ago[1] else at.isoformat()
        return _VALUE.sub(lambda found: self._earlier(*found.groups()), value)

    def _earlier(self, name: str, path: str) -> str:
        found = self.answers[name]["answer"]
        for part in path.split("/"):
            found = found[int(part) if isinstance(found, list) else part]
        return str(found)


def normal(value: Json, known: set[str], key: str = "") -> Json:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        found = {name: normal(each, known, name) for name, each in value.items()}
        return {**found, "version": "<own>"} if "uptimeS" in found else found
    if key in _OWN and value is not None:
        return "<own>"
    if isinstance(value, list):
        if key == "points":  # where a series begins and ends depends on the hour of the day
            value = [each for each in value if _counts(each)]
        entries = [normal(each, known, key) for each in value]
        return sorted(entries) if key == "executionIds" else entries
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, str):
        value = _ID.sub(lambda found: found[0] if found[0] in known else "<id>", value)
        return _TIME.sub("<time>", value)
    return value


def _counts(value: Json) -> bool:
    """Whether anything in it was counted."""
    if isinstance(value, dict):
        return any(map(_counts, value.values()))
    return isinstance(value, int | float) and value != 0


def differences(was: Json, now: Json, at: str = "") -> Iterator[str]:
    """Where two answers differ by more than the tolerance, a line each."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted(was.keys() | now.keys()):
            if key not in now or key not in was:
                yield f"{at}/{key}: {'is gone' if key in was else f'is new: {_short(now[key])}'}"
            else:
                yield from differences(was[key], now[key], f"{at}/{key}")
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{at}: {len(was)} entries, now {len(now)}: {_short(was)} now {_short(now)}"
        for number, (before, after) in enumerate(zip(was, _in_order(was, now), strict=False)):
            yield from differences(before, after, f"{at}/{number}")
    elif not _same(was, now):
        yield f"{at}: {_short(was)} now {_short(now)}"


def _same(was: Json, now: Json) -> bool:
    if isinstance(was, bool) or isinstance(now, bool) or not isinstance(was, int | float):
        return bool(was == now)
    if not isinstance(now, int | float):
        return False
    if isinstance(was, int) and isinstance(now, int):
        return was == now
    return abs(was - now) <= max(ABSOLUTE, RELATIVE * max(abs(was), abs(now)))


def _in_order(was: list[Json], now: list[Json]) -> list[Json]:
    """`now`, with neighbours of like scores exchanged where that makes it equal to `was`."""
    now = list(now)
    for place, wanted in enumerate(was[: len(now)]):
        for other in range(place, len(now)):
            if not _alike(now[place], now[other]):
                break
            if next(differences(wanted, now[other]), None) is None:
                now.insert(place, now.pop(other))
                break
    return now


def _alike(one: Json, other: Json) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one is other
    if "successes" in one and "successes" in other:  # by calls, in any order among as many
        return bool(one["successes"] + one["failures"] == other["successes"] + other["failures"])
    if "patternId" in one and "count" in one:  # by counts, likewise
        return bool(one["count"] == other.get("count"))
    scores = [key for key in _SCORES if key in one and key in other]
    return bool(scores) and all(_same(one[key], other[key]) for key in scores[:1])


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:160]}..."
