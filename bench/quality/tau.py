"""Natural traces: what gpt-4o really did on tau-bench's airline tools, replayed in time order.

At each failure the memory knows what happened before it, in all sessions, and nothing after. The
action is right when

- parameters are changed as the agent itself later did with success, or, where the error states a
  total, so that the same payments add up to it;
- parameters are left alone (an abstention, or `escalate`) where the error states no right value:
  seats, balances and flights that are not there are for the user to decide about.

A value is invented when it is in neither the error, the context nor the call itself, and was not
seen in other sessions' successes. MIT, sierra-research/tau-bench.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass

from aftercall.models import SuggestResponse
from aftercall.reflection.retry_rules import apply_changes
from bench.quality.brain import Recording, open_brain
from bench.quality.natural import failed_call, leaves, rows
from bench.quality.trial import Json
from embeddings.protocol import Embedder

SET = "tau_airline"
_TOTAL = re.compile(r"total price is (\d+), but paid (\d+)")


@dataclass(frozen=True, slots=True)
class Answered:
    """A natural failure, what was done about it, and whether that was right."""

    tool: str
    message: str
    action: str
    confidence: float
    right: bool
    as_mended: bool
    """Whether it equals what the agent itself then sent with success."""
    invented: bool
    parameters: Json | None


async def replay(embedder: Embedder) -> list[Answered]:
    """Ask about each failure as it happens."""
    mended = {
        (row["session"], row["failed_seq"]): row["corrected_parameters"]
        for row in rows(SET, "repairs")
    }
    found = []
    async with open_brain(embedder) as brain:
        recording = Recording([])
        for row in sorted(rows(SET, "traces"), key=lambda row: (row["timestamp"], row["seq"])):
            error = row["error"] and {"message": row["error"]["message"]}
            if row["outcome"] == "failure":
                await brain.learn(recording.executions)
                recording = Recording([], recording.now, recording.count)
                call = failed_call(row, error)
                answer = await brain.ask(call)
                found.append(_judged(row, answer, mended.get((row["session"], row["seq"]))))
            recording.add(
                agent=row["agent"], session=row["session"], tool=row["tool"],
                server=row["server"], parameters=row["parameters"],
                context=row["context"] or "", schema=None, error=error,
            )  # fmt: skip
    return found


def _judged(row: Json, answer: SuggestResponse, mended: Json | None) -> Answered:
    first = answer.suggestions[0] if answer.suggestions else None
    sent = apply_changes(row["parameters"], first.changes) if first else None
    changed = first is not None and first.action == "change_parameters" and sent is not None
    stated = _TOTAL.search(row["error"]["message"])
    if not changed or sent is None:
        right = stated is None and (first is None or first.action == "escalate")
    else:
        right = sent == mended or (stated is not None and _adds_up(row, sent, int(stated[1])))
    return Answered(
        tool=row["tool"],
        message=row["error"]["message"],
        action=first.action if first else "abstained",
        confidence=first.confidence if first else 0.0,
        right=right,
        as_mended=changed and sent == mended,
        invented=changed and sent is not None and _invents(row, sent),
        parameters=sent if changed else None,
    )


def _adds_up(row: Json, sent: Json, total: int) -> bool:
    """Whether the same payments, and nothing else, now add up to the stated total."""
    payments, before = sent.get("payment_methods", []), row["parameters"]["payment_methods"]
    rest = {key: value for key, value in sent.items() if key != "payment_methods"}
    same = all(row["parameters"].get(key) == value for key, value in rest.items())
    ids = [each.get("payment_id") for each in payments]
    return (
        same
        and ids == [each.get("payment_id") for each in before]
        and sum(each.get("amount", 0) for each in payments) == total
    )


def _invents(row: Json, sent: Json) -> bool:
    """Whether a new plain value is stated nowhere; a sum or difference of stated numbers is not."""
    text = " ".join((row["error"]["message"], row["context"] or "", json.dumps(row["parameters"])))
    numbers = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", text)}
    reached = _reached(_reached(numbers))
    old = Counter(leaves(row["parameters"]))
    for leaf in Counter(leaves(sent)) - old:
        if isinstance(leaf, int | float) and (float(leaf) in numbers or float(leaf) in reached):
            continue
        if str(leaf) not in text:
            return True
    return False


def _reached(numbers: set[float]) -> set[float]:
    """The numbers with their sums and differences."""
    pairs = [(a, b) for a in numbers for b in numbers]
    return numbers | {abs(a - b) for a, b in pairs} | {a + b for a, b in pairs}
