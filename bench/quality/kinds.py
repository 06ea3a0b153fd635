"""Kinds of mistakes that nothing was fitted on: `docs/figures/kinds.md` and the pages beside it.

The families `mixed` were made after the first ones had been looked at: several mistakes at once, in
the voices of many servers, on Seal-Tools and tau2's shop beside the first two worlds. The families
`agents` came after these (`kinds_agents`), then `fresh` (`kinds_fresh`), in yet other voices, and
`wild`, `late` and `sixth` (`kinds_wild`, `kinds_late`, `kinds_sixth`). Nothing was fitted on a
batch when it was measured at first sight.

History is right calls and the mistakes of `bench.quality.damage`, which the memory has seen mended;
the test is other sessions with other kinds of mistakes. BFCL's development APIs are executed. What
GitHub's schemas refuse is a failure, and so is a date in a form that GitHub does not read
or an owner whom it does not know; there a correction is right when it equals the gold call.
"""

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bench.quality import bfcl, github, kinds_agents, kinds_fresh, retail, seal
from bench.quality import kinds_damage as texts
from bench.quality import kinds_mixed as mixed
from bench.quality import kinds_shapes as shapes
from bench.quality.brain import open_brain
from bench.quality.datasets import left_out
from bench.quality.kinds_late import LATE
from bench.quality.kinds_sixth import SIXTH
from bench.quality.kinds_wild import WILD, Batch
from bench.quality.kinds_words import number_in_words
from bench.quality.methods import aftercall, results_of
from bench.quality.natural import leaves
from bench.quality.scores import SURE, scores
from bench.quality.sessions import Dataset, GoldCall, Session, history
from bench.quality.split import split
from bench.quality.trial import Damage, Json, Result, Trial, Verdict
from embeddings.protocol import Embedder
from retrieval.knowledge.values.scalars import same_value

UNREPAIRABLE = "should not be repaired"
FRESH = ("fresh", "fresh beyond repair")
KEPT_FRESH = ("fresh, kept", "fresh beyond repair, kept")
BATCHES = {"fourth": WILD, "fifth": LATE, "sixth": SIXTH}
"""Those that are dealt in two halves, by their place."""
UNFITTED = tuple(name for each in BATCHES.values() for name in each.names(kept=False))
"""Families that are developed on, and that the weights of confidence are not fitted on."""
KEPT = (
    "agents, kept", "agents beyond repair, kept", *KEPT_FRESH,
    *(name for each in BATCHES.values() for name in each.names(kept=True)),
)  # fmt: skip
"""Families of final tables: other kinds than those developed on, on other tools, in other voices.
Their steps measure them once, at the end; nobody looks at them before. Of those kept before the
latest the judge was fitted on since."""
LAST = SIXTH.names(kept=True)
"""Those of them that nobody has seen."""
FROZEN = "45d0d69"
"""The commit in which those of `agents` were chosen."""
NEVER = frozenset(
    (UNREPAIRABLE, "mixed beyond repair", "mixed beyond repair, kept before",
     "agents beyond repair", "agents beyond repair, kept", FRESH[1], KEPT_FRESH[1],
     *(each.names(kept=kept)[1] for each in BATCHES.values() for kept in (False, True)))
)  # fmt: skip
"""Families in which nothing can be repaired."""
MIXED = frozenset(
    ("mixed", "mixed beyond repair", "mixed, kept before", "mixed beyond repair, kept before")
)
EVERYWHERE = MIXED | {"agents", "agents beyond repair", *FRESH, *UNFITTED, *KEPT}
"""Families that are measured in all worlds, on one half of the tools."""
OF_KEPT_TOOLS = frozenset(("mixed, kept before", "mixed beyond repair, kept before", *KEPT))
"""Those of the other half."""
FITTED = (
    "names",
    "types",
    "forms of values",
    "structure",
    "values",
    "several at once",
    UNREPAIRABLE,
    "mixed",
    "mixed beyond repair",
    "agents",
    "agents beyond repair",
    *FRESH,
)
"""Families that the weights of confidence are fitted on; of other sessions than are measured."""
FITTED_BY_JUDGE = tuple(name for name in (*FITTED, *UNFITTED, *KEPT) if name not in LAST)
"""Those that the judge is fitted on: all but the kept half of the latest batch."""
MOST = 12
"""Trials of a kind in a world."""
MOST_MIXED = 60
"""The same of a kind in `MIXED`, which is many kinds in one."""
OF_A_TOOL = 3
"""Trials of a kind that may be of the same tool."""
TRIES = 8
"""Mistakes of a kind that are tried on a call until the tool refuses one."""

FAMILIES: dict[str, dict[str, texts.Maker]] = {
    "names": {
        "synonym of a word": lambda draw: texts.one_renamed(draw, texts.synonyms),
        "abbreviation": lambda draw: texts.one_renamed(draw, texts.abbreviations),
        "plural or singular": lambda draw: texts.one_renamed(draw, texts.numbers_of_names),
        "the tool's noun before it": texts.with_noun,
        "another language's word": lambda draw: texts.one_renamed(draw, texts.translations),
        "neutral word": texts.neutral,
        "its type in the name": texts.with_type,
    },
    "types": {
        "number with a unit": texts.with_unit,
        "yes or no": texts.yes_or_no,
        "number in words": texts.in_words,
        "list as text": texts.as_comma_text,
        "null for an optional": texts.optional_as(None),
        "text null or undefined": texts.optional_as("null", "undefined", "None"),
        "whole number as a fraction's text": texts.as_fraction_text,
    },
    "forms of values": {
        "date in another form": lambda draw: texts.each_text(draw, texts.dates),
        "marks around": lambda draw: texts.each_text(draw, texts.quoted),
        "blanks around": lambda draw: texts.each_text(draw, texts.blanks),
        "number with marks": texts.marked_numbers,
        "listed value's synonym": lambda draw: texts.each_listed(draw, texts.listed_synonyms),
        "listed value misspelt": lambda draw: texts.each_listed(
            draw, lambda text: texts.misspelt(draw.rng, text)
        ),
        "listed value's other spelling": lambda draw: texts.each_listed(draw, texts.spellings),
    },
    "structure": {
        "whole call under a key": lambda draw: shapes.whole(
            draw, ("params", "input", "arguments"), lambda sent: sent
        ),
        "whole call as JSON text": lambda draw: shapes.whole(
            draw, ("input", "arguments", "json"), json.dumps
        ),
        "kwargs": shapes.as_kwargs,
        "value wrapped in an object": shapes.wrapped_value,
        "flat for a list of one": shapes.flat,
        "object for a list of one": shapes.bare_object,
        "one level too high": shapes.too_high,
        "one level too deep": shapes.too_deep,
        "positional list": shapes.positional,
        "JSON text for an object": shapes.items_as_text,
        "object for JSON text": shapes.object_for_text,
        "map for a list of objects": shapes.map_for_list,
        "list for a map": shapes.list_for_map,
    },
    "values": {
        "part of a known value": lambda draw: texts.each_text(
            draw, texts.part_left_out, listed=False
        ),
        "known value misspelt twice": lambda draw: texts.each_text(
            draw, lambda text: texts.misspelt(draw.rng, text), listed=False
        ),
        "out of bounds": texts.percent,
        "two values swapped": texts.swapped,
        "value of another tool's call": texts.of_another_call,
        "path for a name": lambda draw: texts.each_text(
            draw, texts.relative, listed=False
        ),
    },
    "several at once": {
        "two renames": shapes.two_renamed,
        "rename and type": shapes.rename_and(
            texts.in_words, texts.yes_or_no, texts.as_comma_text, texts.with_unit
        ),
        "rename and form": shapes.rename_and(
            lambda draw: texts.each_listed(draw, texts.spellings),
            lambda draw: texts.each_text(draw, texts.quoted),
        ),
        "wrapped and renamed": shapes.wrapped_and_renamed,
        "all names in another style": shapes.all_in_other_style,
    },
    "should not be repaired": {
        "placeholder": shapes.placeholder,
        "arguments cut off": shapes.cut_off,
        "qualifier in its place": shapes.qualifier,
        "missing id": shapes.missing_id,
    },
    "mixed": mixed.families(mixed.DEVELOPED),
    "mixed beyond repair": mixed.beyond_repair(mixed.DEVELOPED),
    "mixed, kept before": mixed.families(mixed.FINAL),
    "mixed beyond repair, kept before": mixed.beyond_repair(mixed.FINAL),
    "agents": kinds_agents.families(kept=False),
    "agents beyond repair": kinds_agents.beyond_repair(kept=False),
    "agents, kept": kinds_agents.families(kept=True),
    "agents beyond repair, kept": kinds_agents.beyond_repair(kept=True),
    "fresh": kinds_fresh.families(kept=False),
    "fresh beyond repair": kinds_fresh.beyond_repair(kept=False),
    "fresh, kept": kinds_fresh.families(kept=True),
    "fresh beyond repair, kept": kinds_fresh.beyond_repair(kept=True),
    **{
        family: makers
        for batch in BATCHES.values()
        for kept in (False, True)
        for family, makers in batch.makers(kept=kept).items()
    },
}  # fmt: skip
"""Every kind, by family."""


@dataclass(frozen=True, slots=True)
class World:
    """Tools that refuse wrong calls, and judge corrections."""

    name: str
    dataset: Dataset
    error_of: Callable[[GoldCall, Json], Json | None]
    """What a tool says of parameters; None where they do something."""
    verdict: Callable[[GoldCall, Json], Verdict]
    servers: frozenset[str]
    """Whose calls are damaged."""


NAMES = ("BFCL", "GitHub", "Seal-Tools", "Retail")


def worlds() -> list[World]:
    """Those that are installed."""
    found = []
    if bfcl.available():
        found.append(World("BFCL", bfcl.Bfcl(), _bfcl_error, bfcl.verdict, bfcl.DEVELOPMENT))
    if github.available():
        servers = frozenset((github.SERVER,))
        found.append(World("GitHub", github.GitHub(), _github_error, _github_verdict, servers))
    if seal.available():
        servers = frozenset((seal.SERVER,))
        found.append(World("Seal-Tools", seal.Seal(), seal.error_of, seal.verdict, servers))
    if retail.available():
        servers = frozenset((retail.SERVER,))
        found.append(World("Retail", retail.Retail(), retail.error_of, retail.verdict, servers))
    return found


def worlds_left_out() -> list[str]:
    """Return a line for each world that is not installed."""
    there = {world.name for world in worlds()}
    return [left_out(name.lower()) for name in NAMES if name not in there]


def world_of(name: str) -> World:
    """Return a world by its name.

    Raises:
        SystemExit: the world is unknown, or it is not installed; the message says what to do.
    """
    for world in worlds():
        if world.name == name:
            return world
    raise SystemExit(left_out(name.lower()) if name in NAMES else f"a world of {NAMES}, not {name}")


def _bfcl_error(call: GoldCall, parameters: Json) -> Json | None:
    effect = bfcl.run(call, parameters)
    return effect.error if isinstance(effect, bfcl.Failure) else None


def _github_error(call: GoldCall, parameters: Json) -> Json | None:
    return github.error_of(call.tool, parameters) or _api_error(parameters)


_MOMENTS = frozenset(("since", "until", "before", "lastReadAt"))
_DAYS = frozenset(("start_date", "target_date", "date_value"))
_FORMS: tuple[tuple[frozenset[str], re.Pattern[str], str], ...] = (
    (_MOMENTS, re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?"),
     "invalid ISO 8601 timestamp: {} (supported formats: YYYY-MM-DDThh:mm:ssZ or YYYY-MM-DD)"),
    (_DAYS, re.compile(r"\d{4}-\d\d-\d\d"), "invalid date {!r}: expected YYYY-MM-DD"),
    (frozenset(("owner", "repo")), re.compile("|".join(github.PLACES)),
     "failed to resolve repository: GET https://api.github.com/repos/{}: 404 Not Found []"),
)  # fmt: skip


def _api_error(value: Any) -> Json | None:
    """What GitHub's API says of values that the schemas let through."""
    if isinstance(value, list):
        return next(filter(None, map(_api_error, value)), None)
    for name, each in value.items() if isinstance(value, dict) else ():
        for names, form, said in _FORMS:
            if name in names and isinstance(each, str) and not form.fullmatch(each):
                return {"type": "ToolError", "message": said.format(each)}
        if error := _api_error(each):
            return error
    return None


def _github_verdict(call: GoldCall, parameters: Json) -> Verdict:
    if _github_error(call, parameters):
        return "fails"
    same = same_value(_read(parameters), _read(call.parameters))
    return "right" if same else "wrong success"


def _read(value: Any) -> Any:
    """The value with JSON texts read: how one is written, spaces and all, is not what is meant."""
    if isinstance(value, dict):
        return {name: _read(each) for name, each in value.items()}
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


async def _judge(world: World, call: GoldCall, parameters: Json) -> Verdict:
    return world.verdict(call, parameters)


async def _guess(_: Json) -> Verdict:
    """Of a call that holds no right repair: whatever is sent instead, nobody asked for it."""
    return "wrong success"


def trials(world: World, chosen: Sequence[Session], families: Sequence[str]) -> list[Trial]:
    """Up to `MOST` damaged calls of each kind that the tools refuse; the same each time."""
    return [
        trial
        for family in families
        for kind, maker in FAMILIES[family].items()
        for trial in islice(
            _of_kind(world, chosen, family, kind, maker), MOST_MIXED if family in MIXED else MOST
        )
    ]


def _of_kind(
    world: World, chosen: Sequence[Session], family: str, kind: str, maker: texts.Maker
) -> Iterator[Trial]:
    rng = random.Random(f"kinds/{world.name}/{kind}")
    calls = [
        (session, at)
        for session in chosen
        for at, call in enumerate(session.calls)
        if call.server in world.servers
        and (family not in EVERYWHERE or _is_kept(call.tool) is (family in OF_KEPT_TOOLS))
    ]
    rng.shuffle(calls)
    others = {
        tool: [each.parameters for session in chosen for each in session.calls if each.tool == tool]
        for tool in {session.calls[at].tool for session, at in calls}
    }
    seen: Counter[str] = Counter()
    sent: set[str] = set()
    for session, at in calls:
        call, earlier = session.calls[at], session.calls[:at]
        schema = world.dataset.schema_of(call) or {}
        if seen[call.tool] < OF_A_TOOL:
            draw = texts.Draw(call, schema, others[call.tool], earlier, rng)
            for made in islice(maker(draw), TRIES):
                trial = _trial(world, draw, family, Damage(kind, family, made.how), made)
                if trial is not None and (key := f"{call.tool} {made.sent}") not in sent:
                    sent.add(key)
                    seen[call.tool] += 1
                    yield trial
                    break


def of_world(world: World, families: Sequence[str]) -> list[str]:
    """Those of the families that a world is asked about."""
    return [each for each in families if world.name in _WHOLE or each in EVERYWHERE]


def _is_kept(tool: str) -> bool:
    """Whether a tool is of the half that is kept for the final table."""
    return hashlib.sha256(f"kept/{tool}".encode()).digest()[0] % 2 == 0


def _trial(
    world: World, draw: texts.Draw, family: str, damage: Damage, made: texts.Made
) -> Trial | None:
    """The trial of what was made of a call; None where the tool takes it."""
    call = draw.call if made.gold is None else replace(draw.call, parameters=made.gold)
    error = made.error or world.error_of(call, made.sent)
    if error is None or (made.gold is not None and world.error_of(call, made.gold)):
        return None
    judge = _guess if family in NEVER else partial(_judge, world, call)
    return Trial(
        session=call.session, tool=call.tool, server=call.server, damaged=made.sent,
        gold=call.parameters, error=error, context=call.context, schema=draw.schema or None,
        damage=damage, judge=judge, sequence=call.sequence, earlier=tuple(draw.earlier),
    )  # fmt: skip


async def results(
    embedder: Embedder, world: World, families: Sequence[str], ways: Sequence[bool] = (True, False)
) -> list[list[Result]]:
    """What the service answers to the trials, asked with the tools' schemas and without."""
    older, test = split(world.dataset.sessions())
    asked = trials(world, test, families)
    found = []
    for with_schema in ways:
        async with open_brain(embedder) as brain:
            taught = await history(world.dataset, older, with_schema=with_schema)
            await brain.learn(taught.executions)
            found.append(await results_of(asked, aftercall(brain, with_schema=with_schema)))
    return found


async def measure(embedder: Embedder, folder: Path, name: str) -> None:
    """Measure the families of a page of `PAGES`; print and write.

    What is not measured here stays in the page: parts left out, what was measured before.
    """
    page = PAGES[name]
    there = worlds()
    parts = [
        f"# Mistakes of kinds that nothing was fitted on{page.title}",
        f"`python -m bench.quality --only {name}`. {page.about} {_EXPLAINED}",
        *(f"{line}." for line in worlds_left_out()),
    ]  # fmt: skip
    for world in there:
        found = await results(embedder, world, of_world(world, page.families))
        parts += [f"## {world.name}", table(*found), _invented(found)]
        print("\n\n".join(parts[-3:]), flush=True)
    file = folder / f"{name}.md"
    if file.exists() and page.kept in (before := file.read_text(encoding="utf-8")):
        parts += [page.kept + before.split(page.kept)[-1].rstrip()]
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of `docs/figures`: its families, and the heading from which on it is kept."""

    families: tuple[str, ...]
    title: str
    about: str
    kept: str


_WHOLE = ("BFCL", "GitHub")
"""Worlds that are asked about every kind; the others were added with the mixed ones."""


def _invented(found: Sequence[Sequence[Result]]) -> str:
    """How many first suggestions have a value that nobody stated, with the schema and without."""
    counts = []
    for results_ in found:
        held = [each for each in results_ if each.attempts and _invents(each)]
        sure = sum(each.confidence > SURE for each in held)
        alone = sum(each.confidence > SURE and each.attempts[0].safe for each in held)
        counts.append(f"{len(held)} of {len(results_)}, {sure} sure, {alone} by itself")
    return (
        "Values that neither call, error, context, session nor schema state: with the schema in "
        f"{counts[0]}; without in {counts[1]}."
    )


def _invents(result: Result) -> bool:
    trial = result.trial
    said = [trial.damaged, trial.error, trial.context, trial.schema]
    said += [[each.parameters, each.result, each.context] for each in trial.earlier]
    text = json.dumps(said, default=str).lower()
    return any(
        isinstance(leaf, str | int | float)
        and not isinstance(leaf, bool)
        and json.dumps(leaf).strip('"').lower() not in text
        and number_in_words(leaf if isinstance(leaf, int) else -1) not in text.split('"')
        for leaf in leaves(result.attempts[0].parameters)
    )


GUESS = 0.5


_EXPLAINED = f"""The memory has right calls of other sessions and other kinds of mistakes, mended.

*Right@1*: the first suggestion does what the undamaged call would have done. *Wrong success*: it
does something else. *Coverage*: surer than {SURE:.2f}; *harm*: the share of these that is not
right. *By itself*: surer than {SURE:.2f} and allowed by its class, so that a client follows it
without asking; *and wrong*: those of them that do something else. *ECE* is of confidence against
right. In the families that cannot be repaired it is right to propose nothing with a confidence of
0.5 or more, and wrong success to do so."""


def _pages(place: str, batch: Batch) -> dict[str, Page]:
    """The pages of a batch's halves."""
    name = f"kinds-{batch.name}"
    aside = f"{batch.about} The other half was put aside (`{name}-kept.md`)."
    last = (
        f"{batch.about} This is the half that was put aside by hashes, of other tools and in other "
        "voices, and measured once."
    )
    return {
        name: Page(batch.names(kept=False), f", the {place} batch", aside, "# At first sight"),
        f"{name}-kept": Page(
            batch.names(kept=True), f", the {place} batch's kept half", last, "# Notes"
        ),
    }


PAGES = {
    "kinds": Page(
        tuple(each for each in FAMILIES if each not in (*KEPT, *FRESH, *UNFITTED)), "",
        "The mixed kinds are two and three mistakes at once, in the voices of many servers. The "
        "kinds of agents are some forty more ways of models to write a call wrongly.",
        "## Without each part",
    ),
    "kinds-final": Page(
        KEPT[:2], ", kept for the end",
        "The kinds of agents, of which these are other kinds, in other voices, of other tools than "
        f"those developed on: chosen by hashes in commit {FROZEN}, and measured once.",
        "# The families that were kept before",
    ),
    "kinds-fresh": Page(
        FRESH, ", the third batch",
        "Twenty more kinds and five that hold no right repair, in yet other voices, made after all "
        "others were mended; a third was put aside (`kinds-fresh-kept.md`).",
        "# At first sight",
    ),
    "kinds-fresh-kept": Page(
        KEPT_FRESH, ", the third batch's kept third",
        "Other kinds, in other voices, of other tools than those developed on: chosen by hashes "
        "before any was measured, and measured once.",
        "# Notes",
    ),
    **{name: page for each in BATCHES.items() for name, page in _pages(*each).items()},
}  # fmt: skip
"""By the name of the step and of the file."""


def table(with_schema: Sequence[Result], without: Sequence[Result]) -> str:
    """A row for each kind and family with schemas, and one of all without."""
    lines = [f"| {' | '.join(('kind', *_COLUMNS))} |", f"|---|{'---:|' * len(_COLUMNS)}"]
    for family in dict.fromkeys(each.trial.damage.parameter for each in with_schema):
        of = [each for each in with_schema if each.trial.damage.parameter == family]
        lines.append(_line(f"**{family}**", of))
        lines += [
            _line(kind, [each for each in of if each.trial.damage.kind == kind])
            for kind in dict.fromkeys(each.trial.damage.kind for each in of)
        ]
    for name, found in (("with the schema", with_schema), ("without", without)):
        can_be = [each for each in found if each.trial.damage.parameter not in NEVER]
        lines.append(_line(f"**all that can be repaired, {name}**", can_be))
        if len(can_be) < len(found):
            never = [each for each in found if each.trial.damage.parameter in NEVER]
            lines.append(_line(f"**{UNREPAIRABLE}, {name}**", never))
    return "\n".join(lines)


_COLUMNS = ("n", "right@1", "wrong success", "coverage", "harm", "by itself", "and wrong", "ECE")


def _line(name: str, of: Sequence[Result]) -> str:
    found = scores(of)
    right, wrong = found.right_at_1, found.wrong_success
    if all(each.trial.damage.parameter in NEVER for each in of):
        wrong = sum(each.confidence >= 0.5 for each in of) / max(1, len(of))
        right = 1 - wrong
    alone = [each for each in of if each.confidence > SURE and each.attempts[0].safe]
    figures = (right, wrong, found.coverage, found.harm)
    cells = [str(len(of)), *(f"{figure:.2f}" for figure in figures), str(len(alone)),
             str(sum(each.verdicts[0] == "wrong success" for each in alone)),
             f"{found.ece:.2f}"]  # fmt: skip
    return f"| {name} | {' | '.join(cells)} |"
