"""Audit: what a repaired call keeps, loses and adds, whatever its mistake was.

Doubts (`retrieval.proposals.doubts`) are signs that somebody thought of. A mistake of a kind that
nobody foresaw has none of them, and still the repaired call shows it: words are gone or new, values
hold signs that none of the tool's had, names are left that nobody used. So every proposal that is
made from the call, the schema and the error is judged by counts of these as well: gradient boosted
trees (Friedman 2001) give the log-odds of right, never lower for more evidence of its own. They are
fitted in `bench.quality.fit` on all families of mistakes but those kept for the end.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue
from aftercall.redaction import is_redacted
from retrieval.parameters import Path, leaves_like, place_of, value_at
from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal
from retrieval.proposals.doubts import unconfirmed
from retrieval.texts import outline
from retrieval.values import fits

AUDITED = (
    "unconfirmed",
    "new_words",
    "lost_words",
    "changed_values",
    "same_values",
    "least_likely",
    "new_signs",
    "odd_signs",
    "unlike_values",
    "reading",
    "reshaped",
    "parameters",
    "faults",
)
"""The order of the numbers that `audit` gives."""

_WORD = re.compile(r"[^\W_]+")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ODD = re.compile(r"[^\w\s\-.,/:@]")
_EXAMPLES = re.compile(r"\be\.?g\b|\bsuch as\b|\bexamples?\b|\blike\b|\be\.?x\.", re.IGNORECASE)
"""What says that values in a description are not all that there are."""
_FEW = 3
"""Texts of successes below which they do not show which signs are usual."""
_OFTEN = 5
"""Uses of each known value from which on they look like all that there are."""
_FORMS = 2
"""Forms of values up to which a parameter has a form."""
_MOST_TEXTS = 50
_MOST = 2_000
"""Characters of a text, and plain values of a call, that are looked at."""


def audit(case: Case, proposal: Proposal) -> tuple[float, ...]:
    """The numbers of a proposal for the call as it was sent, as `AUDITED` names them.

    Words are counted in all plain values; *new signs* are texts with a sign that no success had
    there, *odd signs* texts with one that few values have, where too few successes are known;
    *unlike values* are none of a list that is stated or was always kept to, or of another form than
    all that is known.
    """
    sent = leaves_like(case.parameters, ())[:_MOST]
    repaired = leaves_like(proposal.parameters, ())[:_MOST]
    before, after = (Counter(_words(each)) for each in (sent, repaired))
    same = sum(same_json(value_at(case.parameters, path), value) for path, value in repaired)
    new_signs, odd_signs = _signs(case, proposal.parameters)
    unlike = sum(_is_unlike(case, path, value) for path, value in repaired)
    return (
        float(unconfirmed(case, proposal)),
        float((after - before).total()),
        float((before - after).total()),
        float(len(repaired) - same),
        float(same),
        min(option.evidence.mean for option in proposal.options),
        float(new_signs),
        float(odd_signs),
        float(unlike),
        case.reading.confidence,
        float(proposal.reshaped is not None),
        float(len(case.parameters)),
        float(len(case.faults)),
    )


def _words(leaves: Sequence[tuple[object, JsonValue]]) -> list[str]:
    found = []
    for _, value in leaves:
        if value is None or isinstance(value, bool):
            continue
        is_whole = isinstance(value, float) and value.is_integer()
        text = str(int(value) if is_whole and isinstance(value, float) else value)
        found += _WORD.findall(_INNER_CAPITAL.sub(" ", text[:_MOST]).lower())
    return found


def _signs(case: Case, parameters: JsonObject) -> tuple[int, int]:
    new = odd = 0
    for path, value in leaves_like(parameters, ())[:_MOST]:
        if not isinstance(value, str):
            continue
        known = _known_texts(case, str(path[0])) if len(path) == 1 else []
        if len(known) < _FEW:
            odd += _ODD.search(value[:_MOST]) is not None
        else:
            usual = set("".join(known))
            new += any(not each.isalnum() and each not in usual for each in value[:_MOST])
    return new, odd


def _is_unlike(case: Case, path: Path, value: JsonValue) -> bool:
    if len(path) > 1:
        inner = case.profile.at(place_of(path)) if case.profile is not None else None
        return inner is not None and inner.successes > 0 and not fits(value, tuple(inner.types))
    name = str(path[0])
    view, seen, known = case.parameter(name), case.seen(name), _known_texts(case, name)
    if not isinstance(value, str) or is_redacted(value):
        return False
    examples = view is not None and _EXAMPLES.search(view.description) is not None
    if view is not None and len(view.stated_values) > 1 and not examples:
        return value not in map(str, view.stated_values)
    if seen is None or len(known) < _FEW or value in known:
        return False
    forms = set(map(outline, known))
    is_closed = seen.successes >= _OFTEN * len(seen.values)
    return is_closed or (len(forms) <= _FORMS and outline(value) not in forms)


def _known_texts(case: Case, name: str) -> list[str]:
    seen = case.seen(name)
    keys = list(seen.values)[:_MOST_TEXTS] if seen is not None else []
    return [json.loads(key) for key in keys if key[:1] == '"']


class Node(NamedTuple):
    """A place in a tree: smaller or equal goes `low`, else `high`; a leaf has neither."""

    feature: int
    threshold: float
    low: int
    high: int
    value: float


class Trees(NamedTuple):
    """Boosted trees: the log-odds are `base` and the value of one leaf of each tree."""

    features: tuple[str, ...]
    base: float
    trees: tuple[tuple[Node, ...], ...]

    def log_odds(self, vector: Sequence[float]) -> float:
        """The log-odds of right of a vector in the order of `features`."""
        return self.base + sum(_leaf(tree, vector) for tree in self.trees)


def _leaf(tree: Sequence[Node], vector: Sequence[float]) -> float:
    node = tree[0]
    while node.low:
        node = tree[node.low if vector[node.feature] <= node.threshold else node.high]
    return node.value


def trees_of_text(text: str) -> list[Trees]:
    """The trees of a file's text, as `bench.quality.fitting` writes it: each fit of them."""
    fitted = json.loads(text)
    return [
        Trees(
            tuple(fitted["features"]),
            each["base"],
            tuple(tuple(Node(*node) for node in tree) for tree in each["trees"]),
        )
        for each in fitted["fits"]
    ]


@cache
def shipped_trees() -> list[Trees]:
    """The trees that were fitted on the project's own benchmark, first those on all of it.

    Each of the others has never seen an eighth of its kinds of mistakes, so where all are sure of
    a repair, it is not like a kind that only some have seen.
    """
    return trees_of_text(files("retrieval").joinpath("trees.json").read_text(encoding="utf-8"))
