"""Values of the session: failed calls whose repair the session itself holds, and traps.

    python -m bench.quality --only session

140 sessions of two files, written by somebody who did not know the code: paths misspelt or in
another folder, names that a listing showed, absolute paths, paths inside commands, ids under the
same key and kind, what tools say of the caller. A trap has an id of another kind, several that
would do, none, or an error that is no matter of a value: there no change may be proposed. Both were
first asked unseen: of `cases.toml` 27 of 52 were right and 4 wrong, of `later.toml`, after work on
the first, 30 of 48 and 3; no trap was touched. What is below is after work on both.
"""

import json
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from aftercall.models import FailedCall
from aftercall.reflection.retry_rules import apply_changes
from bench.quality.brain import Recording, open_brain
from bench.quality.trial import Json
from embeddings.protocol import Embedder

_CASES = Path(__file__).parent / "session_values"
_EVEN = 0.5


@dataclass
class Found:
    """What became of the questions of one kind."""

    cases: int = 0
    right: int = 0
    wrong: int = 0
    followed: int = 0
    likely: int = 0
    """Wrong at more than even odds."""
    names: list[str] = field(default_factory=list)


def cases(name: str = "cases") -> list[Json]:
    """Return the cases of a file, with their JSON texts read."""
    text = (_CASES / f"{name}.toml").read_text(encoding="utf-8")
    rows: list[Json] = tomllib.loads(text)["cases"]
    for row in rows:
        for part in ("schema", "call", "gold"):
            row[part] = json.loads(row[part]) if part in row else None
        for before in row["before"]:
            before["parameters"] = json.loads(before["parameters"])
            before["result"] = json.loads(before["result"])
    return rows


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure; print and write `session.md`."""
    found: dict[str, Found] = {}
    for case in (*cases(), *cases("later")):
        kind = found.setdefault(case["kind"], Found())
        kind.cases += 1
        outcome, is_likely, is_followed = await _ask(embedder, case)
        kind.right += outcome == "right"
        if outcome == "wrong":
            kind.wrong += 1
            kind.likely += is_likely
            kind.followed += is_followed
        if outcome != "right" and not (outcome == "left" and not case["gold"]):
            kind.names.append(f"{case['name']} ({outcome})")
    lines = ["# Values of the session", "", f"{__doc__.split(chr(10) * 2, 2)[2].strip()}", ""]
    lines += ["| kind | cases | right first | wrong first | ... above .5 | followed and wrong |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    total: Counter[str] = Counter()
    for name, each in found.items():
        is_trap = name.startswith("trap")
        right = "-" if is_trap else str(each.right)
        lines.append(
            f"| {name.replace('_', ' ')} | {each.cases} | {right} | {each.wrong} | {each.likely} "
            f"| {each.followed} |"
        )
        total["cases"] += 0 if is_trap else each.cases
        total["right"] += each.right
        print(name, each.names)
    lines += ["", f"Right first: {total['right']} of {total['cases']}."]
    (folder / "session.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


async def _ask(embedder: Embedder, case: Json) -> tuple[str, bool, bool]:
    server, _, tool = case["tool"].partition("/")
    async with open_brain(embedder) as brain:
        recording = Recording([])
        for before in case["before"]:
            of, _, name = before["tool"].partition("/")
            recording.add(
                agent="one", session="now", tool=name, server=of, context="", schema=None,
                parameters=before["parameters"], result=before["result"],
            )  # fmt: skip
        await brain.learn(recording.executions)
        fields = {
            "agent": "one", "session_id": "now", "tool_name": tool, "server_name": server,
            "parameters": case["call"], "error": {"message": case["error"]},
            "input_schema": case["schema"],
        }  # fmt: skip
        answer = await brain.ask(FailedCall.model_validate(fields))
    first = answer.suggestions[0] if answer.suggestions else None
    if first is None or first.action != "change_parameters":
        return "left", False, False
    sent = apply_changes(case["call"], first.changes)
    outcome = "right" if sent in case["gold"] else "wrong"
    return outcome, first.confidence > _EVEN, first.safe
