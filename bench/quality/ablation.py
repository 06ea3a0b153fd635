"""What each heuristic earns: the repair benchmark with one part switched off, into `ablation.md`.

    python -m bench.quality --ablation [PATTERN]

For each part: right@1, harm and coverage of Aftercall on BFCL, on GitHub's schemas and on real MCP
servers (with what was learned, with and without the tools' schemas, and of an empty memory without
them), tau-bench's failures and the refusals. The parts of reading and of edits are off while the
memory learns, too. A part that brings less than 0.2 points of right@1 on every set, and that no
safety rule needs, is deleted (the house's rule on heuristics).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.quality import datasets, refusals
from bench.quality.brain import Brain, Recording, open_brain
from bench.quality.methods import aftercall, results_of
from bench.quality.report import ALL, by_kind
from bench.quality.sessions import history, trials
from bench.quality.split import split
from bench.quality.trial import Trial
from embeddings.protocol import Embedder
from retrieval import acceptance, answer, inference
from retrieval import likeness as words
from retrieval.advice import advise, waits
from retrieval.judge import ranking, signals
from retrieval.knowledge import repairs
from retrieval.proposals import compose, context, experience, names, shape, values
from retrieval.proposals import faults as found
from retrieval.reading import faults, reader

DATASETS = ("bfcl", "github", "servers")
NOTHING = "nothing off"
_FIGURES = ("right_at_1", "harm", "coverage")

Patch = tuple[Any, str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A heuristic: what to put in its place, and whether it has a hand in learning."""

    name: str
    patches: tuple[Patch, ...]
    learns: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Figures by set: right@1, harm and coverage; of tau and refusals the shares that are right."""

    part: str
    sets: dict[str, tuple[float, ...]]


def _nothing(*_: Any, **__: Any) -> Iterator[Any]:
    return iter(())


def _none(*_: Any, **__: Any) -> None:
    return None


def _empty(*_: Any, **__: Any) -> tuple[Any, ...]:
    return ()


def _false(*_: Any, **__: Any) -> bool:
    return False


def parts() -> list[Part]:
    """Every part that can be switched off by itself."""
    return [
        Part(NOTHING, ()),
        *_reading(),
        *_faults(),
        *_proposers(),
        *memory_parts(),
        *_advice(),
        *_confidence(),
        *_edits(),
    ]


def _reading() -> Iterator[Part]:
    for family in faults.PHRASES:
        kept = chain.from_iterable(rules for n, rules in faults.PHRASES.items() if n != family)
        yield Part(f"reading: {family}", ((faults, "_ALL_PHRASES", tuple(kept)),), learns=True)
    for name, module, function, instead in (
        ("pydantic's text", reader, "read_pydantic", _nothing),
        ("JSON of validators", reader, "read_structured", _nothing),
        ("place by value", reader, "_place_of_value", _none),
        ("place by type", reader, "_of_type", _empty),
        ("two sentences as one", reader, "_joined", lambda faults: faults),
        ("classifier", reader.ErrorReading, "is_unsure", property(_false)),
    ):
        yield Part(f"reading: {name}", ((module, function, instead),), learns=True)


def _faults() -> Iterator[Part]:
    for name, function, instead in (
        ("type that no success had", "_odd_types", lambda *_: []),
        ("the only value that stands out", "_suspects", lambda *_: []),
        ("inside of objects", "inner_faults", lambda *_: []),
        ("schema against error", "_plausible", lambda said, *_: said),
    ):
        patch = ((found, function, instead),)
        also = ((shape, function, instead),) if hasattr(shape, function) else ()
        yield Part(f"faults: {name}", patch + also, learns=False)


def _proposers() -> Iterator[Part]:
    for name, module, function in (
        ("learned rules", compose, "rule_options"),
        ("corpus", compose, "seed_options"),
        ("renamed", compose, "renamed_options"),
        ("unexpected", compose, "unexpected_options"),
        ("wrong type", compose, "wrong_type_options"),
        ("out of range", compose, "out_of_range_options"),
        ("refused value", compose, "refused_value_options"),
        ("near known value", values, "_near"),
        ("context", compose, "context_options"),
        ("context writes it otherwise", context, "_restated"),
        ("half of a pair in the context", context, "_other_halves"),
        ("stated value", compose, "stated_value_options"),
        ("inside of objects", compose, "nested_options"),
    ):
        yield Part(f"proposals: {name}", ((module, function, _nothing),))
    yield Part("proposals: unwrapped list", _both(compose, values, "unwrapped_options", _nothing))
    yield Part("proposals: usual value", _both(compose, values, "usual_values", _nothing))
    yield Part("proposals: schema retires rules", ((experience, "is_retired", _false),))


def certainty_parts() -> Iterator[Part]:
    """What was made for mistakes that nobody foresaw; `bench.quality.kinds` has their table."""
    yield Part("shape before names", ((compose, "reshaped", _none),))
    yield Part("names that are the likest", _both(names, shape, "best_matches", _no_matches))
    yield Part("no call in a call is a value", ((names, "holds_parameters", _false),))
    yield Part("stated forms", ((values, "_in_form", _nothing), (values, "in_form", _none)))
    yield Part("values of forms that schemas state", ((found, "out_of_form", lambda *_: []),))
    yield Part("nulls in words are left out", ((values, "left_out_options", _nothing),))
    yield Part("synonyms of names", ((words, "_share", _false),))
    yield Part("synonyms of listed values", ((values, "synonym_of", _none),))
    yield Part("the only value in the message", ((reader, "_placed", lambda faults, *_: faults),))
    yield Part("the session's values", ((compose, "session_options", _nothing),))
    yield from mixed_parts()


def mixed_parts() -> Iterator[Part]:
    """What was made for several mistakes at once."""
    yield Part("strange names of open schemas", ((found, "_strangers", _nothing),))
    yield Part("no surer than what is known of a value", ((ranking, "bound", lambda _: 1.0),))


def _no_matches(*_: Any, **__: Any) -> dict[str, str]:
    return {}


def memory_parts() -> Iterator[Part]:
    """What is remembered of sessions; `bench.quality.memory` has a table of its own for them."""
    yield Part("memory: mended alike", ((experience, "learned_options", _nothing),))
    yield Part("memory: general bounds", ((repairs, "_bounds", _nothing),))
    yield Part("memory: evidence adds up", ((compose, "_told", lambda proposal, *_: proposal),))
    yield Part("memory: the session's values", ((compose, "session_options", _nothing),))
    yield Part("memory: what comes first", ((advise, "learned_first_call", _none),))


def _both(one: ModuleType, other: ModuleType, name: str, instead: Any) -> tuple[Patch, ...]:
    return tuple((module, name, instead) for module in (one, other) if hasattr(module, name))


def _advice() -> Iterator[Part]:
    yield Part("advice: all of it", ((answer, "advise", _none),))
    yield Part("advice: refusals of the matter", ((advise, "refusal_of", _none),))
    yield Part("advice: stated waits", _both(advise, waits, "stated_wait_ms", _none))


def _confidence() -> Iterator[Part]:
    for at, name in enumerate(signals.SIGNALS):
        yield Part(f"signal: {name}", ((ranking, "signals_of", _without_signal(at)),))
    yield Part("verify: schema", ((ranking, "check_of", _none),))
    yield Part("verify: error", ((acceptance, "_contradicts", _false),))


def _without_signal(at: int) -> Callable[..., tuple[float, ...]]:
    whole = ranking.signals_of

    def signals_of(*given: Any) -> tuple[float, ...]:
        return tuple(0.0 if place == at else each for place, each in enumerate(whole(*given)))

    return signals_of


_KINDS = ("FromError", "Clamp", "Cast", "Unwrap", "Respell", "FromContext")


def _edits() -> Iterator[Part]:
    search = inference._Search  # noqa: SLF001  # the parts are switched off from outside
    for kind in _KINDS:
        yield Part(
            f"edits: {kind}",
            tuple((search, name, _without_kind(search, name, kind))
                  for name in ("_changes", "_sources")),
            learns=True,
        )  # fmt: skip
    yield Part("edits: every element", ((search, "_give", _false),), learns=True)


def _without_kind(search: Any, name: str, kind: str) -> Callable[..., Iterator[Any]]:
    whole = getattr(search, name)

    def rest(*given: Any) -> Iterator[Any]:
        return (each for each in whole(*given) if type(each).__name__ != kind)

    return rest


@contextmanager
def switched_off(part: Part) -> Iterator[None]:
    """The product without a part."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in part.patches]
    try:
        for owner, name, instead in part.patches:
            setattr(owner, name, instead)
        reader._faults_of.cache_clear()  # noqa: SLF001  # it keeps what was read with the part
        yield
    finally:
        for owner, name, own in before:
            setattr(owner, name, own)
        reader._faults_of.cache_clear()  # noqa: SLF001  # as above


@dataclass(slots=True)
class _Set:
    """Trials, and what is learned before they are asked about."""

    name: str
    trials: list[Trial]
    learned: Recording | None
    with_schema: bool
    brain: Brain


async def measure(embedder: Embedder, pattern: str) -> list[Row]:
    """The figures with nothing off, and with each part off whose name matches the pattern."""
    chosen = [part for part in parts() if not part.patches or re.search(pattern, part.name)]
    rows = []
    async with AsyncExitStack() as stack:
        sets = await _sets(embedder, stack)
        for part in chosen:
            with switched_off(part):
                rows.append(Row(part.name, await _figures(embedder, sets, part)))
            print(rows[-1].part, rows[-1].sets, flush=True)
    return rows


async def _sets(embedder: Embedder, stack: AsyncExitStack) -> list[_Set]:
    found = []
    for name in DATASETS:
        dataset = await stack.enter_async_context(datasets.open_dataset(name))
        if dataset is None:
            continue
        older, test = split(dataset.sessions())
        asked = await trials(dataset, test)
        for with_schema, learns in ((True, True), (False, True), (False, False)):
            learned = await history(dataset, older, with_schema=with_schema) if learns else None
            brain = await stack.enter_async_context(open_brain(embedder))
            if learned:
                await brain.learn(learned.executions)
            memory = "" if learns else "no memory, "
            title = f"{name}, {memory}{'' if with_schema else 'no '}schema"
            found.append(_Set(title, asked, learned, with_schema, brain))
    return found


async def _figures(
    embedder: Embedder, sets: Sequence[_Set], part: Part
) -> dict[str, tuple[float, ...]]:
    found: dict[str, tuple[float, ...]] = {}
    for each in sets:
        if part.learns and each.learned:
            async with open_brain(embedder) as brain:
                await brain.learn(each.learned.executions)
                found[each.name] = await _scores(brain, each)
        else:
            found[each.name] = await _scores(each.brain, each)
    if tau := await datasets.tau_figures(embedder):
        found["tau"] = (tau["right"], tau["invented"])
    github = next((each for each in sets if each.name == "github, schema"), None)
    if github:
        answers = await refusals.answers_of(refusals.cases(), github.brain.ask, with_schema=True)
        row = refusals.score(answers).row()
        found["refusals"] = (row["right_action"], 1 - row["no_change"])
    return found


async def _scores(brain: Brain, each: _Set) -> tuple[float, ...]:
    method = aftercall(brain, with_schema=each.with_schema)
    scored = by_kind(await results_of(each.trials, method))[ALL]
    return tuple(getattr(scored, name) for name in _FIGURES)


def write(rows: Sequence[Row], folder: Path) -> None:
    """The page `ablation.md`: differences in points, against nothing switched off."""
    base, *others = rows
    header = ["part off", *base.sets]
    lines = [
        "# What each heuristic earns\n",
        "Made by `python -m bench.quality --ablation`. Each cell: the points of right@1 that are "
        "lost without the part, then those that harm gains; for tau-bench and the refusals, the "
        "right actions that are lost, then what is invented or changed though it must not be. 0: "
        "neither moves. A part that brings less than 0.2 points of right@1 on every set is deleted "
        "unless a safety rule needs it.\n",
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
    ]
    whole = " | ".join(f"{values[0]:.3f}, {values[1]:.3f}" for values in base.sets.values())
    lines.append(f"| {base.part} (shares) | {whole} |")
    for row in others:
        cells = [_cell(base.sets[name], values) for name, values in row.sets.items()]
        lines.append(f"| {row.part} | {' | '.join(cells)} |")
    (folder / "ablation.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cell(whole: tuple[float, ...], without: tuple[float, ...]) -> str:
    lost, harm = 100 * (whole[0] - without[0]), 100 * (without[1] - whole[1])
    return "0" if abs(lost) < 0.05 and abs(harm) < 0.05 else f"{lost:.1f}, {harm:.1f}"
