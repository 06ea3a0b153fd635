"""The tables of the repair benchmark, as Markdown and as JSON."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.quality.laws.options import Options
from bench.quality.scores import Scores, scores
from bench.quality.trial import KINDS, Result

Json = dict[str, Any]

ALL = "all six"
_EASY = ("renamed key", "wrong type", "unexpected parameter")


@dataclass(slots=True)
class Figures:
    """Everything that was measured; `results` by dataset, then by method, then its results."""

    results: dict[str, dict[str, list[Result]]] = field(default_factory=dict)
    classifier: Json | None = None
    skipped: list[str] = field(default_factory=list)
    laws: Options = field(default_factory=Options)
    """What of the laws is measured."""


def by_kind(results: Sequence[Result]) -> dict[str, Scores]:
    """Scores by kind of damage, and over the six kinds that a call's own parameters can have."""
    kinds: dict[str, list[Result]] = {}
    for result in results:
        kinds.setdefault(result.trial.damage.kind, []).append(result)
    of_kinds = [result for result in results if result.trial.damage.kind in KINDS]
    return {kind: scores(found) for kind, found in sorted(kinds.items())} | {ALL: scores(of_kinds)}


def markdown(figures: Figures) -> str:
    """The page `docs/figures/repair.md`."""
    now = datetime.now(UTC)
    parts = [
        "# Repair",
        f"{now:%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}. Made by "
        "`make bench-quality`; everything measured is in `repair.json`. All figures are shares; "
        "*right* is as defined in `bench/quality`: the retried call does what the undamaged one "
        "would have done, in its result and in the state it leaves. Seeds are fixed; the same code "
        "gives the same figures.",
        "![How sure, how right](repair-reliability.svg)",
        *_asked(figures),
        *_methods(figures),
        *_kinds(figures),
        *_classifier(figures),
    ]
    if figures.skipped:
        parts += ["## Not measured here", *[f"- {each}" for each in figures.skipped]]
    return "\n\n".join(parts) + "\n"


def final_page(figures: Figures) -> str:
    """Return the page `docs/figures/repair-final.md`."""
    about = (
        "BFCL's TravelAPI and TradingBot, on which nothing was developed, fitted or chosen: to be "
        "measured after everything else is done. Older sessions of the same APIs are the history, "
        "as in [repair.md](repair.md)."
    )
    parts = ["# Repair, the final check", about, *_methods(figures), *_kinds(figures)]
    return "\n\n".join(parts) + "\n"


def as_json(figures: Figures) -> Json:
    """The same, complete."""
    return {
        "datasets": {
            dataset: {
                method: {kind: found.row() for kind, found in by_kind(results).items()}
                for method, results in methods.items()
            }
            for dataset, methods in figures.results.items()
        },
        "classifier": figures.classifier,
        "skipped": figures.skipped,
    }  # fmt: skip


def _asked(figures: Figures) -> list[str]:
    bfcl = figures.results.get("BFCL")
    if bfcl is None:
        return []
    with_schema, without = by_kind(bfcl["Aftercall, schema"]), by_kind(bfcl["Aftercall"])
    rows = [
        (f"right@1, {kind}, with schema", "0.98", with_schema[kind].right_at_1) for kind in _EASY
    ]
    for kind, asked in (
        ("changed case", "0.60"),
        ("missing required", "0.35"),
        ("wrong value", "0.35"),
    ):
        rows.append((f"right@1, {kind}, with schema", asked, with_schema[kind].right_at_1))
    rows.append(("right@1 over all, with schema", "0.72", with_schema[ALL].right_at_1))
    rows += [(f"right@1, {kind}, no schema", "0.90", without[kind].right_at_1) for kind in _EASY]
    rows.append(("right@1 over all, no schema", "0.60", without[ALL].right_at_1))
    for name, found in (("with schema", with_schema[ALL]), ("no schema", without[ALL])):
        rows += [
            (f"coverage above 0.80, {name}", "at least 0.55", found.coverage),
            (f"harm, {name}", "at most 0.02", found.harm),
            (f"wrong success above 0.80, {name}", "at most 0.01", found.sure_wrong_success),
            (f"ECE, {name}", "at most 0.05", found.ece),
        ]
    if figures.classifier:
        rows.append(
            ("classifier, macro F1 on its test split", "0.90", figures.classifier["macroF1"])
        )
    lines = [f"| {what} | {asked} | {measured:.3f} |" for what, asked, measured in rows]
    return ["## Asked and measured", _table(("figure", "asked", "measured"), lines)]


_COLUMNS: tuple[tuple[str, str], ...] = (
    ("right@1", "right_at_1"), ("right@3", "right_at_3"), ("fix@1", "fix_at_1"),
    ("right key@1", "right_key_at_1"), ("wrong success", "wrong_success"),
    ("abstained", "abstained"), ("coverage", "coverage"), ("harm", "harm"),
    ("wrong success above 0.80", "sure_wrong_success"), ("auto-retry right", "auto_retry_right"),
    ("ECE", "ece"),
)  # fmt: skip


def _methods(figures: Figures) -> list[str]:
    parts = ["## Against what one would do without it"]
    for dataset, methods in figures.results.items():
        lines = [_row(method, by_kind(results)[ALL]) for method, results in methods.items()]
        count = by_kind(next(iter(methods.values())))[ALL].trials
        parts += [
            f"### {dataset}: {count:,} damaged calls",
            _table(("method", *(name for name, _ in _COLUMNS)), lines),
        ]
    return parts


def _kinds(figures: Figures) -> list[str]:
    parts = ["## By kind of damage"]
    for dataset, methods in figures.results.items():
        for method, results in methods.items():
            if method.startswith("Aftercall"):
                lines = [_row(f"{kind} ({s.trials})", s) for kind, s in by_kind(results).items()]
                header = ("damage (trials)", *(name for name, _ in _COLUMNS))
                parts += [f"### {dataset}, {method}", _table(header, lines)]
    return parts


def _classifier(figures: Figures) -> list[str]:
    found = figures.classifier or {}
    lines = [f"| {key} | {value} |" for key, value in found.items() if not isinstance(value, dict)]
    return ["## Classifier", _table(("figure", "measured"), lines)] if lines else []


def _row(name: str, found: Scores) -> str:
    cells = " | ".join(f"{getattr(found, attribute):.3f}" for _, attribute in _COLUMNS)
    return f"| {name} | {cells} |"


def _table(header: Sequence[str], lines: Sequence[str]) -> str:
    return "\n".join([f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *lines])
