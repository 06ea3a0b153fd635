"""Natural failures in time order: what agents really did, and what they then did about it.

At each failure the memory knows what happened before it, in all sessions and in its own, and
nothing after. What is right is read from the traces: the agent's own repair where the data mark a
likely one; the same call again where it worked later unchanged; else nothing that is sent.

A repair is within reach when each value that it brings in stands in the call, the error, the
context, an earlier call or result of the session, or an earlier repair. Most of claude_code's are
not (another shell command, another passage of a file): *or left* counts silence as right there.
Developed on the older halves. MIT, entireio/cli and sierra-research/tau-bench.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aftercall.models import FailedCall, SuggestResponse
from aftercall.reflection.retry_rules import apply_changes
from bench import data
from bench.quality.brain import Recording, open_brain
from bench.quality.trial import Json
from embeddings.protocol import Embedder

SETS = ("tau_airline", "claude_code")
Truth = Literal["change", "same", "nothing"]
_LATER = 30
"""Calls of the session after a failure in which the same call may work unchanged."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A failure, what was answered and what the agent did about it."""

    row: Json
    truth: Truth
    mended: Json | None
    """The agent's own repair, where it is one."""
    reachable: bool
    action: str
    confidence: float
    sent: Json | None
    at_once: bool = False
    """Whether the same call worked with nothing in between; else something else had to be done."""

    @property
    def right_key(self) -> bool:
        """Whether the same parameters were changed as the agent changed."""
        failed = self.row["parameters"]
        if self.sent is None or self.mended is None:
            return False
        return _changed(failed, self.sent) == _changed(failed, self.mended)

    @property
    def right_or_left(self) -> bool:
        """Whether the action was right, or nothing was sent where the repair is out of reach."""
        out_of_reach = self.truth == "change" and not self.reachable
        return self.right_action or (out_of_reach and self.sent is None)

    @property
    def equal(self) -> bool:
        """Whether it is what the agent itself then sent."""
        return self.sent is not None and self.sent == self.mended

    @property
    def right_action(self) -> bool:
        """Whether the kind of action was right; a change only with the right parameters."""
        if self.truth == "change":
            return self.right_key
        if self.truth == "same" and self.at_once:
            return self.action == "retry_unchanged"
        return self.action in ("abstained", "escalate", "call_first", "switch_tool")


def files_of(name: str) -> tuple[str, str]:
    """Return the names of a set's files: of its traces, and of its repairs."""
    return f"{name}.traces.jsonl.gz", f"{name}.repairs.jsonl.gz"


def rows(name: str, what: str) -> list[Json]:
    """The rows of a file of a set."""
    return list(data.rows(f"{name}.{what}.jsonl.gz"))


def available(name: str) -> bool:
    """Whether the traces and repairs are there."""
    return data.is_there(*files_of(name))


async def replay(embedder: Embedder, name: str) -> list[Answered]:
    """Ask about each failure as it happens."""
    traces = sorted(
        rows(name, "traces"), key=lambda row: (row["timestamp"] or "", row["session"], row["seq"])
    )
    if any(row["timestamp"] is None for row in traces):
        traces.sort(key=lambda row: (row["session"], row["seq"]))
    repairs = {
        (row["session"], row["failed_seq"]): row["corrected_parameters"]
        for row in rows(name, "repairs")
        if row["likely_repair"]
    }
    by_session: dict[str, list[Json]] = {}
    for row in traces:
        by_session.setdefault(row["session"], []).append(row)
    found, brought = [], set[str]()
    async with open_brain(embedder) as brain:
        recording = Recording([])
        for row in traces:
            error = row["error"] and {"message": row["error"]["message"]}
            if row["outcome"] == "failure":
                await brain.learn(recording.executions)
                recording = Recording([], recording.now, recording.count)
                answer = await brain.ask(failed_call(row, error))
                mended = repairs.get((row["session"], row["seq"]))
                known = _known(row, by_session[row["session"]]) | brought
                found.append(_judged(row, answer, mended, known, by_session[row["session"]]))
                if mended is not None:
                    brought |= _texts(mended)
            recording.add(
                agent=row["agent"], session=row["session"], tool=row["tool"],
                server=row["server"], parameters=row["parameters"],
                context=row["context"] or "", schema=None, error=error, result=row.get("result"),
            )  # fmt: skip
    return found


def failed_call(row: Json, error: Json) -> FailedCall:
    """A failure of the traces as it is asked about."""
    fields = {
        "agent": row["agent"], "session_id": row["session"], "tool_name": row["tool"],
        "server_name": row["server"], "parameters": row["parameters"],
        "context": (row["context"] or "")[:2000] or None, "error": error,
    }  # fmt: skip
    return FailedCall.model_validate(fields)


def _judged(
    row: Json,
    answer: SuggestResponse,
    mended: Json | None,
    known: set[str],
    session: Sequence[Json],
) -> Answered:
    first = answer.suggestions[0] if answer.suggestions else None
    changes = first is not None and first.action == "change_parameters"
    sent = (
        apply_changes(row["parameters"], first.changes) if first is not None and changes else None
    )
    later = [each for each in session if row["seq"] < each["seq"] <= row["seq"] + _LATER]
    same = [
        at
        for at, each in enumerate(later)
        if each["outcome"] == "success"
        and (each["tool"], each["parameters"]) == (row["tool"], row["parameters"])
    ]
    truth: Truth = "same" if same else "change" if mended is not None else "nothing"
    return Answered(
        row=row,
        truth=truth,
        mended=mended if truth == "change" else None,
        reachable=mended is not None and _reaches(row["parameters"], mended, known),
        action=first.action if first else "abstained",
        confidence=first.confidence if first else 0.0,
        sent=sent,
        at_once=same[:1] == [0],
    )


def _known(row: Json, session: Sequence[Json]) -> set[str]:
    """The plain values, and the text, that were there before a failure."""
    before = [each for each in session if each["seq"] < row["seq"]]
    found = _texts(row["parameters"])
    for each in before:
        found |= _texts(each["parameters"])
    texts = [row["error"]["message"], row["context"] or ""]
    texts += [str(each.get("result") or "") for each in before]
    return found | {f"\x00{' '.join(texts)}"}


def _reaches(failed: Json, mended: Json, known: set[str]) -> bool:
    text = next((each for each in known if each.startswith("\x00")), "")
    new = _texts(mended) - _texts(failed)
    return all(each in known or (len(each) > 1 and each in text) for each in new)


def _changed(before: Json, after: Json) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def leaves(value: Any) -> Iterator[Any]:
    """The plain values of a value, whatever its depth."""
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        yield value
        return
    for item in inner:
        yield from leaves(item)


def _texts(value: Any) -> set[str]:
    return {str(leaf) for leaf in leaves(value)}


def row_of(found: Sequence[Answered]) -> Json:
    """The figures of a set."""
    reach = [each for each in found if each.truth == "change" and each.reachable]
    sure = [each for each in found if each.sent is not None and each.confidence > 0.8]
    return {
        "failures": len(found),
        "likely repairs": sum(each.truth == "change" for each in found),
        "within reach": len(reach),
        "right key of these": _share(each.right_key for each in reach),
        "equal value of these": _share(each.equal for each in reach),
        "worked later unchanged": sum(each.truth == "same" for each in found),
        "right action of all": _share(each.right_action for each in found),
        "... or left, where nobody could know": _share(each.right_or_left for each in found),
        "changed": sum(each.sent is not None for each in found),
        "sure": len(sure),
        "equal of the sure": sum(each.equal for each in sure),
        **{
            f"answered with {action}": sum(each.action == action for each in found)
            for action in sorted({each.action for each in found})
        },
    }


def _share(values: Iterator[bool]) -> float:
    found = list(values)
    return round(sum(found) / len(found), 3) if found else 0.0
