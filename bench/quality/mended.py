"""Mended alike: the same change made by several agents, then asked about by another.

Each case is a mistake that agents of a made-up tool mend in the same way, behind an error that says
everything, something or nothing. Five agents mend it in ten sessions, with other queries and ids
each time; a sixth makes it again. Right is the call that the others would have sent. The cases of
`mended_cases.json` with `"later": true` were written when the code was done and are reported apart.

Cases without `meant` have nothing in common but their error: there, nothing may be suggested with
a confidence of one half or more.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftercall.models import FailedCall, SuggestResponse
from aftercall.reflection.retry_rules import apply_changes
from bench.quality.brain import Brain, Recording, open_brain
from bench.quality.trial import Json
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder

AGENTS = 5
SESSIONS = (1, 2, 3, 5, 10)
REPORTED = (1, 3, 8)
SURE = 0.5
_CASES = Path(__file__).with_name("mended_cases.json")
_WORDS = (
    "harbour", "walnut", "glacier", "lantern", "meadow", "copper", "violin", "pepper", "canyon",
    "saddle", "orchid", "timber", "raven", "marble", "willow", "amber", "falcon", "ginger",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One mistake; `wrong` and `right` are what differs, one after the other in the sessions."""

    name: str
    form: str
    error: Json
    base: Json
    wrong: list[Json]
    right: list[Json]
    asked: Json
    meant: Json | None
    later: bool = False

    @property
    def tool(self) -> str:
        """A tool of its own."""
        return "".join(letter if letter.isalnum() else "_" for letter in self.name)

    def call(self, changes: Json, number: int) -> Json:
        """The call of a session: the base with other words and numbers, and the changes."""
        filled = _filled({**self.base, **changes}, number)
        return {name: value for name, value in filled.items() if value != _ABSENT}

    def failure(self, changes: Json, number: int) -> Json:
        """The error, with the values that it quotes."""
        call = self.call(changes, number)
        message = self.error["message"].format(**{**call, "call": call}) if call else ""
        return {**self.error, "message": message}


_ABSENT = "$absent"


def _filled(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, number) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, number) for each in value]
    if not isinstance(value, str) or value == _ABSENT:
        return value
    word = f"{_WORDS[number % len(_WORDS)]} {_WORDS[number * 7 % len(_WORDS)]}"
    if value == "$n":
        return 100 + 37 * number
    return (
        value.replace("$q", word)
        .replace("$w", word.split(maxsplit=1)[0])
        .replace("$i", f"{7919 * number}")
    )


def cases() -> list[Case]:
    """All cases."""
    found = []
    for row in json.loads(_CASES.read_text(encoding="utf-8")):
        wrong, right = (_list(row.get(each, [{}])) for each in ("wrong", "right"))
        fields = {
            "name": row["name"], "form": row["form"], "base": row.get("base", {"query": "$q"}),
            "error": {"message": row["error"]} if isinstance(row["error"], str) else row["error"],
            "wrong": wrong, "right": right, "asked": row.get("asked", wrong[0]),
            "meant": row.get("meant", None if row.get("nothing") else right[0]),
            "later": row.get("later", False),
        }  # fmt: skip
        found.append(Case(**fields))
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, slots=True)
class Answered:
    """What was answered about a case after so many sessions."""

    case: Case
    sessions: int
    named: bool
    """Whether the agents named the failure that they repaired (`repairOf`)."""
    confidence: float
    right: bool
    sent: Json | None
    reason: str | None

    @property
    def sure_and_wrong(self) -> bool:
        """Whether it was sure of something that nobody meant."""
        return self.confidence >= SURE and not self.right


async def measure(
    embedder: Embedder, chosen: Sequence[Case], sessions: Sequence[int] = SESSIONS
) -> list[Answered]:
    """Ask about each case after so many sessions, with and without `repairOf`."""
    found = []
    for named in (False, True):
        async with open_brain(embedder) as brain:
            recording = Recording([])
            for number in range(1, max(sessions) + 1):
                for case in chosen:
                    mend(recording, case, number, named=named)
                if number in sessions:
                    await brain.learn(recording.executions)
                    recording = Recording([], recording.now, recording.count)
                    found += [await _asked(brain, case, number, named=named) for case in chosen]
    return found


def mend(recording: Recording, case: Case, number: int, *, named: bool) -> None:
    """One agent's session: another call that works, the mistake, and the call that mended it."""
    which = (number - 1) % len(case.wrong)
    wrong, right = case.wrong[which], case.right[which % len(case.right)]
    of = {
        "agent": f"agent-{(number - 1) % AGENTS}", "session": f"{case.tool}-{number}",
        "tool": case.tool, "server": "made-up", "context": "", "schema": None,
    }  # fmt: skip
    recording.add(**of, parameters=case.call(wrong, number), error=case.failure(wrong, number))
    failed = recording.executions[-1].execution_id
    recording.add(**of, parameters=case.call(right, number))
    if named:
        last = recording.executions[-1]
        recording.executions[-1] = last.model_copy(update={"repair_of": failed})


async def after_failures(embedder: Embedder, chosen: Sequence[Case]) -> dict[int, list[float]]:
    """The confidence of what ten sessions taught, after so many reported failures of it."""
    async with open_brain(embedder) as brain:
        recording = Recording([])
        for number in range(1, max(SESSIONS) + 1):
            for case in chosen:
                mend(recording, case, number, named=False)
        await brain.learn(recording.executions)
        taught = [case for case in chosen if (await _asked(brain, case, 10, named=False)).right]
        found: dict[int, list[float]] = {}
        for count in range(max(REPORTED) + 1):
            for case in taught:
                answer = await ask(brain, case)
                meant = case.call(case.meant or {}, 77)
                like = [
                    each
                    for each in answer.suggestions
                    if apply_changes(case.call(case.asked, 77), each.changes) == meant
                ]
                found.setdefault(count, []).append(like[0].confidence if like else 0.0)
                if like:
                    await _fail(brain, case, recording, like[0].suggestion_id, 80 + count)
        return found


async def _fail(
    brain: Brain, case: Case, recording: Recording, suggestion: str, number: int
) -> None:
    """The sixth agent follows a suggestion in another call like it, and that fails again."""
    await brain.suggester.close()  # what was suggested is in the log
    recording.executions.clear()
    recording.add(
        agent="sixth", session=f"sixth/{case.tool}/{recording.count}", tool=case.tool,
        server="made-up", context="", schema=None, parameters=case.call(case.meant or {}, number),
        error=case.failure(case.asked, number),
    )  # fmt: skip
    [failed] = recording.executions
    await brain.learn([failed.model_copy(update={"suggestion_id": suggestion})])


async def _asked(brain: Brain, case: Case, number: int, *, named: bool) -> Answered:
    answer = await ask(brain, case)
    first = answer.suggestions[0] if answer.suggestions else None
    sent = apply_changes(case.call(case.asked, 77), first.changes) if first else None
    changed = first is not None and first.action == "change_parameters"
    meant = None if case.meant is None else case.call(case.meant, 77)
    return Answered(
        case,
        number,
        named,
        first.confidence if first and changed else 0.0,
        changed and sent is not None and sent == meant,
        sent if changed else None,
        answer.reason,
    )


async def ask(brain: Brain, case: Case, agent: str = "sixth") -> SuggestResponse:
    """What a new agent is answered that makes the mistake."""
    fields = {
        "agent": agent, "session_id": f"{agent}/{case.tool}", "tool_name": case.tool,
        "server_name": "made-up", "parameters": case.call(case.asked, 77),
        "error": case.failure(case.asked, 77),
    }  # fmt: skip
    return await brain.ask(FailedCall.model_validate(fields))


def figures(found: Sequence[Answered]) -> Iterator[str]:
    """The table, in Markdown."""
    yield "| cases | " + " | ".join(f"{each}" for each in SESSIONS) + " |"
    yield "|---" * (len(SESSIONS) + 1) + "|"
    for title, of in (
        ("right first", [each for each in found if each.case.meant and not each.case.later]),
        (
            "... cases written later",
            [each for each in found if each.case.meant and each.case.later],
        ),
    ):
        shares = []
        for number in SESSIONS:
            asked = [each.right for each in of if each.sessions == number]
            shares.append(f"{sum(asked) / len(asked):.2f} of {len(asked)}" if asked else "-")
        yield f"| {title} | " + " | ".join(shares) + " |"
    wrong = [
        sum(each.sure_and_wrong for each in found if each.sessions == number) for number in SESSIONS
    ]
    yield "| sure and wrong | " + " | ".join(map(str, wrong)) + " |"


def failure_figures(failed: dict[int, list[float]]) -> Iterator[str]:
    """The table of confidences after reported failures, in Markdown."""
    yield "| failures reported | median | highest |"
    yield "|---|---|---|"
    for count in (0, *REPORTED):
        found = sorted(failed[count])
        yield f"| {count} | {found[len(found) // 2]:.2f} | {found[-1]:.2f} |"
    falls = sum(
        all(failed[at + 1][case] < failed[at][case] or not failed[at][case] for at in range(8))
        for case in range(len(failed[0]))
    )
    yield ""
    yield f"It falls each time in {falls} of {len(failed[0])} cases."


async def main() -> None:
    """Print the table and what is not right."""
    embedder = await open_embedder()
    try:
        found = await measure(embedder, cases())
    finally:
        await embedder.close()
    for each in found:
        is_wrong = not each.right and (each.case.meant is not None or each.sure_and_wrong)
        if each.sessions == max(SESSIONS) and is_wrong and not each.named:
            print(each.case.name, each.confidence, each.sent, each.reason)
    print("\n".join(figures(found)))


if __name__ == "__main__":
    asyncio.run(main())
