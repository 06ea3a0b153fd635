"""The cases: calls that failed, what was meant by them, and good calls to leave alone.

`written` are the calls of `bench/quality/written/*.jsonl`, `field` those of the given data
(`field/*.jsonl`, found by `bench.data`), `learned` the forms of change of
`bench/quality/rewrites/forms.toml`: two agents failed and fixed a call, a third one fails likewise.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import data
from bench.quality.rewrites_cases import TAUGHT, error_about, forms

Json = dict[str, Any]
_WRITTEN = Path(__file__).parents[1] / "quality" / "written"
_FIELD = ("field/frameworks.jsonl", "field/mcp.jsonl")
_OPTIONAL = ("description", "context", "annotations")


@dataclass(frozen=True, slots=True)
class Case:
    """A question, and all calls that are right; none where nobody can know the right call.

    A question holds `id`, `server`, `tool`, `schema` (null where unknown), `call`, `error` (an
    object with `message`; null before the call is made), and where known `description`, `context`,
    `annotations` and `examples`: a list of `error`, `call` and `fixed`, the call that worked then.
    """

    question: Json
    gold: tuple[Json, ...]

    @property
    def is_good(self) -> bool:
        """Whether the call is good as it is, and was not made yet."""
        return self.question["error"] is None


def written() -> Iterator[Case]:
    """Yield the calls that were written one by one."""
    for file in sorted(_WRITTEN.glob("*.jsonl")):
        for row in _rows(file):
            gold = row["gold"]
            yield Case(_question(row), () if gold is None else (gold,))


def field() -> Iterator[Case]:
    """Yield the calls of public bug reports.

    Raises:
        FileNotFoundError: the data are missing; the message says how to get them.
    """
    if not data.is_there(*_FIELD):
        raise FileNotFoundError(data.left_out("The field set", *_FIELD))
    for name in _FIELD:
        for row in _rows(data.path(name)):
            yield Case(_question(row), tuple(row["gold"]))


def learned() -> Iterator[Case]:
    """Yield calls of tools that two agents have fixed before, each with these two examples."""
    for form in forms():
        examples = [
            {"error": error_about(form.error, failed), "call": failed, "fixed": fixed}
            for failed, fixed in form.pairs[:TAUGHT]
        ]
        about = {"server": form.server, "tool": form.tool, "schema": form.schema}
        for at, (failed, fixed) in enumerate(form.pairs[TAUGHT:]):
            question = {"id": f"{form.name}/{at}", **about, "call": failed,
                        "error": error_about(form.error, failed), "examples": examples}  # fmt: skip
            yield Case(question, (fixed,))


SETS: dict[str, Callable[[], Iterator[Case]]] = {
    "written": written, "field": field, "learned": learned
}  # fmt: skip


def with_good_calls(cases: list[Case]) -> Iterator[Case]:
    """Yield the cases, then what was meant by each as a good call that was not made yet."""
    yield from cases
    seen = set()
    for case in cases:
        if not case.gold:
            continue
        right = case.gold[0]
        known = (case.question["server"], case.question["tool"], json.dumps(right, sort_keys=True))
        if known not in seen:
            seen.add(known)
            name = f"{case.question['id']}, good"
            yield Case(case.question | {"id": name, "call": right, "error": None}, (right,))


def _rows(file: Path) -> Iterator[Json]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _question(row: Json) -> Json:
    error = {name: value for name, value in row["error"].items() if value is not None}
    names = ("id", "server", "tool", "schema", "call")
    asked = {name: row[name] for name in names} | {"error": error}
    return asked | {name: row[name] for name in _OPTIONAL if row.get(name)}
