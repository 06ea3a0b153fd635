"""Sibling tools: what mended one tool, asked about the same API behind another server.

    python -m bench.quality --only siblings

The forms of `rewrites` are taught on their tool; asked is a sibling, by turns: behind another
server; there in the other spelling (`searchIssues` for `search_issues`, its parameters too); with
another verb; as a second version. A tool of another trade that fails with the same words, its
parameters the same, must not be touched.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from bench.quality.brain import open_brain
from bench.quality.laws.asking import Asker
from bench.quality.laws.case import Case
from bench.quality.rewrites import outcome
from bench.quality.rewrites_cases import TAUGHT, Form, forms
from bench.quality.trial import Json
from embeddings.protocol import Embedder

_EVEN = 0.5
_OTHER_TRADE = ("weigh_parcel", "tuneGuitar", "bake-bread", "count_votes", "paintFence")
_VERBS = {"search": "list", "create": "add", "get": "fetch", "update": "edit", "list": "find"}


@dataclass
class Found:
    """What became of the questions about one kind of sibling."""

    outcomes: Counter[str] = field(default_factory=Counter)
    touched: int = 0
    followed: int = 0


def _other_style(name: str) -> str:
    if "_" in name:
        first, *rest = name.split("_")
        return first + "".join(word.title() for word in rest)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _restyled(value: Any) -> Any:
    if isinstance(value, dict):
        return {_other_style(name): _restyled(held) for name, held in value.items()}
    return [_restyled(each) for each in value] if isinstance(value, list) else value


def _with_verb(name: str) -> str:
    first, mark, rest = name.partition("_")
    return f"{_VERBS.get(first, first)}{mark}{rest}"


def _same(value: Any) -> Any:
    return value


KINDS: dict[str, tuple[Callable[[str], str], str | None, Callable[[Any], Any]]] = {
    "behind another server": (_same, "elsewhere", _same),
    "in the other spelling": (_other_style, "elsewhere", _restyled),
    "with another verb": (_with_verb, "elsewhere", _same),
    "a second version": (lambda name: f"{name}_v2", None, _same),
}


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure; print and write `siblings.md`."""
    found = {kind: Found() for kind in (*KINDS, "another trade")}
    async with open_brain(embedder) as brain:
        ask = Asker(brain).reply
        for at, form in enumerate(forms()):
            history = form.lessons(form.pairs[:TAUGHT])
            kind = list(KINDS)[at % len(KINDS)]
            case = _about(form, kind, history)
            reply = await ask(case)
            found[kind].outcomes[outcome(reply)] += 1
            other = replace(
                case, tool=_OTHER_TRADE[at % len(_OTHER_TRADE)], server="another-trade", schema=None
            )
            bare, taught = await ask(replace(other, history=())), await ask(other)
            is_new = [c for c in taught.suggested.suggestions[:1] if c.confidence > _EVEN]
            base = [c.corrected_parameters for c in bare.suggested.suggestions]
            touched = any(c.corrected_parameters not in base for c in is_new)
            found["another trade"].touched += touched
            found["another trade"].outcomes["asked"] += 1
    text = "\n".join(_page(found)) + "\n"
    print(text)
    (folder / "siblings.md").write_text(text, encoding="utf-8")


def cases() -> Iterator[Case]:
    """Yield each form on each kind of sibling, and on a tool of another trade."""
    for at, form in enumerate(forms()):
        history = form.lessons(form.pairs[:TAUGHT])
        for kind in KINDS:
            case = _about(form, kind, history)
            yield case
        trade = _OTHER_TRADE[at % len(_OTHER_TRADE)]
        yield replace(case, tool=trade, server="another-trade", schema=None, right=None)


def _about(form: Form, kind: str, history: tuple[Any, ...]) -> Case:
    named, server, spelt = KINDS[kind]
    failed, mended = form.pairs[TAUGHT]
    schema: Json = form.schema
    if spelt is not _same:
        schema = {**schema, "properties": _restyled_properties(schema["properties"])}
        schema["required"] = [_other_style(name) for name in schema.get("required", ())]
    case = form.asked(spelt(failed), (spelt(mended),), history, schema)
    return replace(case, tool=named(form.tool), server=server or form.server)


def _restyled_properties(properties: Json) -> Json:
    found = {}
    for name, part in properties.items():
        inner = dict(part)
        for key in ("properties",):
            if key in inner:
                inner[key] = _restyled_properties(inner[key])
        if "required" in inner:
            inner["required"] = [_other_style(each) for each in inner["required"]]
        if isinstance(inner.get("items"), dict) and "properties" in inner["items"]:
            items = dict(inner["items"])
            items["properties"] = _restyled_properties(items["properties"])
            items["required"] = [_other_style(each) for each in items.get("required", ())]
            inner["items"] = items
        found[_other_style(name)] = inner
    return found


def _page(found: dict[str, Found]) -> list[str]:
    rows = []
    for kind, each in islice(found.items(), len(KINDS)):
        count = each.outcomes.total()
        right, wrong = each.outcomes["right"], each.outcomes["wrong"]
        rows.append(f"| {kind} | {count} | {right} ({right / count:.2f}) | {wrong} |")
    other = found["another trade"]
    return [
        "# Sibling tools", "",
        " ".join(__doc__.split("\n\n")[2].split()), "",
        "| sibling, with its live schema | asked | right first | wrong |", "|---|---:|---:|---:|",
        *rows, "",
        f"Tools of another trade with the same words: {other.touched} of "
        f"{other.outcomes['asked']} got a suggestion above .5 that they would not get untaught.",
    ]  # fmt: skip
