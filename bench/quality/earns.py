"""What each function earns: every question again without it, into `earns.md`.

    python -m bench.quality.earns --set NAME --into FILE [--stride N] [--at N] [--most N]
    python -m bench.quality.earns --page FILE ...

Each function of reading, proposing, judging and advising that can give nothing is switched off by
itself: it gives no options, None, or what it was given. It is asked only where it gave something
in the whole answer, in at most `MOST` questions of a set, drawn by a seed. So a rule that is never
met is found at once, and one that fires in each call costs no more than any other.

The sets: the developed kinds of mistakes in four worlds with schema and without (`kinds`), the
traps and the calls that must not wait (`traps`), natural failures (`tau_airline`, `claude_code`),
agents' mistakes on real servers (`mistakes`). What the memory learned is the same in both answers.
"""

import argparse
import asyncio
import builtins
import functools
import importlib
import inspect
import json
import pkgutil
import random
import re
import types
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from aftercall.json_patch import same_json
from aftercall.models import FailedCall, SuggestRequest, SuggestResponse, ToolAnnotations
from aftercall.reflection.retry_rules import apply_changes
from bench.quality import kinds, mistakes, natural, servers, traps
from bench.quality.brain import WORKSPACE, Brain, Recording, open_brain
from bench.quality.methods import failed_call, record_earlier
from bench.quality.sessions import history
from bench.quality.split import split
from bench.quality.trial import Json, Trial
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder

ROOMS = (
    "retrieval.advice", "retrieval.proposals", "retrieval.reading", "retrieval.answer",
    "retrieval.confidence", "retrieval.edit_effects", "retrieval.edits", "retrieval.forms",
    "retrieval.likeness", "retrieval.parameters", "retrieval.similar", "retrieval.suggest",
    "retrieval.texts", "retrieval.values", "retrieval.knowledge.repairs",
    "retrieval.knowledge.rules", "retrieval.knowledge.runs", "retrieval.knowledge.links",
    "retrieval.knowledge.documents",
)  # fmt: skip
SURE = 0.80
MOST = 60
"""Questions of a set that are asked again without one function."""
FOLDER = Path(__file__).parents[2] / "docs" / "figures"
_CLEARLY = 4
"""Answers lost in a set that show that a function is needed; nothing more is asked then."""
_TRACE = "__aftercall_trace__"


class First(NamedTuple):
    """The first suggestion: the call it sends, if any, how sure it is, and if by itself."""

    sent: Json | None
    action: str
    sure: float
    safe: bool

    @property
    def follows(self) -> bool:
        """Whether a client sends it without asking."""
        return self.sent is not None and self.safe and self.sure > SURE


Judge = Callable[[First], Awaitable[tuple[bool, bool]]]
"""Whether an answer is right, and whether what follows by itself is wrong."""


# The functions


@dataclass(eq=False, slots=True)
class Function:
    """One that can be switched off: a function of a module or a method, by its own code."""

    name: str
    own: types.FunctionType
    lines: int
    state: tuple[Any, ...] = ()

    def put(self, code: types.CodeType) -> None:
        """Run other code in its place."""
        self.state = (self.own.__code__, self.own.__defaults__, self.own.__kwdefaults__)
        self.own.__defaults__ = self.own.__kwdefaults__ = None
        self.own.__code__ = code

    def restore(self) -> None:
        """Run its own code again."""
        self.own.__code__, self.own.__defaults__, self.own.__kwdefaults__ = self.state

    def copy(self) -> Callable[..., Any]:
        """The function as it is, beside the one that is replaced."""
        copy = types.FunctionType(
            self.own.__code__, self.own.__globals__, self.own.__name__, self.own.__defaults__
        )
        copy.__kwdefaults__ = self.own.__kwdefaults__
        return copy


def functions() -> list[Function]:
    """Those of the rooms that have a neutral answer."""
    found = []
    for module in _modules():
        for owner in (module, *vars(module).values()):
            if owner is not module and not (
                inspect.isclass(owner) and owner.__module__ == module.__name__
            ):
                continue
            for name, value in list(vars(owner).items()):
                own = inspect.unwrap(getattr(value, "fget", None) or value)
                own = getattr(own, "func", own) if isinstance(own, functools.partial) else own
                if (
                    isinstance(own, types.FunctionType)
                    and own.__module__ == module.__name__
                    and not name.startswith("__")
                    and not own.__code__.co_freevars
                    and not inspect.iscoroutinefunction(own)
                    and _neutral(own) is not None
                ):
                    of = "" if owner is module else f"{owner.__name__}."
                    lines = len(inspect.getsourcelines(own)[0])
                    place = module.__name__.removeprefix("retrieval.")
                    found.append(Function(f"{place}: {of}{name}", own, lines))
    return list({each.own: each for each in found}.values())


def _modules() -> Iterator[types.ModuleType]:
    for name in ROOMS:
        module = importlib.import_module(name)
        yield module
        for each in pkgutil.iter_modules(getattr(module, "__path__", ())):
            yield importlib.import_module(f"{name}.{each.name}")


_EMPTY = {
    "tuple": "()", "list": "[]", "dict": "{}", "set": "set()", "frozenset": "frozenset()",
    "Iterator": "iter(())", "Iterable": "()", "Sequence": "()", "bool": "False", "int": "0",
    "str": "''", "JsonObject": "{}",
}  # fmt: skip


def _neutral(own: types.FunctionType) -> str | None:
    """What it gives when it gives nothing, as an expression over its arguments `a` and `k`."""
    signature = inspect.signature(own)
    kind = _shown(own.__annotations__.get("return"))
    if kind == "None":
        return None
    if kind.endswith("| None"):
        return "None"
    for at, parameter in enumerate(signature.parameters.values()):
        if (
            parameter.kind is not parameter.KEYWORD_ONLY
            and kind not in ("bool", "int")
            and (_shown(parameter.annotation) == kind)
        ):
            return f"a[{at}] if len(a) > {at} else k[{parameter.name!r}]"
    return _EMPTY.get(re.split(r"[\[(]", kind)[0])


def _shown(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if not isinstance(annotation, str) and getattr(annotation, "__args__", None):
        text = str(annotation).replace("typing.", "").replace("collections.abc.", "")
    return str(text).replace("types.NoneType", "None").replace("NoneType", "None")


def _code(expression: str) -> types.CodeType:
    space: dict[str, Any] = {}
    exec(f"def neutral(*a, **k): return {expression}", space)  # noqa: S102  # fixed expressions
    code = space["neutral"].__code__
    assert isinstance(code, types.CodeType)
    return code


def _clear() -> None:
    for module in _modules():
        for value in vars(module).values():
            if hasattr(value, "cache_clear") and getattr(value, "__module__", "").startswith(
                "retrieval"
            ):
                value.cache_clear()


@contextmanager
def without(function: Function) -> Iterator[None]:
    """The product without a function."""
    expression = _neutral(function.own)
    assert expression is not None
    function.put(_code(expression))
    _clear()
    try:
        yield
    finally:
        function.restore()
        _clear()


@contextmanager
def traced(chosen: Sequence[Function]) -> Iterator[set[int]]:
    """The numbers of the functions that give something."""
    fired: set[int] = set()
    copies = [each.copy() for each in chosen]
    idle = [_idle(each) for each in chosen]

    def trace(number: int, a: tuple[Any, ...], k: dict[str, Any]) -> Any:
        found = copies[number](*a, **k)
        if inspect.isgenerator(found):
            return _watched(found, number, fired)
        if number not in fired and not idle[number](found, a, k):
            fired.add(number)
        return found

    setattr(builtins, _TRACE, trace)
    for number, each in enumerate(chosen):
        each.put(_code(f"{_TRACE}({number}, a, k)"))
    _clear()
    try:
        yield fired
    finally:
        for each in chosen:
            each.restore()
        delattr(builtins, _TRACE)
        _clear()


def _idle(function: Function) -> Callable[[Any, Any, Any], bool]:
    expression = _neutral(function.own)
    space: dict[str, Any] = {}
    exec(f"def neutral(a, k): return {expression}", space)  # noqa: S102  # as above
    neutral = space["neutral"]

    def is_idle(found: Any, a: Any, k: Any) -> bool:
        try:
            nothing = neutral(a, k)
            if nothing is found or type(nothing) is not type(found):
                return nothing is found
            return bool(nothing == found)
        except (TypeError, ValueError):
            return False

    return is_idle


def _watched(found: Iterator[Any], number: int, fired: set[int]) -> Iterator[Any]:
    for each in found:
        fired.add(number)
        yield each


# The questions


@dataclass(slots=True)
class Tally:
    """What happened to the questions of a set without one function."""

    fired: int = 0
    asked: int = 0
    counts: Counter[str] = field(default_factory=Counter)


class Survey:
    """Asks each question whole, then without each function that gave something in it."""

    def __init__(self, most: int) -> None:
        self.functions = functions()
        self.most = most
        self.sets: dict[str, int] = Counter()
        self.tallies: dict[str, dict[str, Tally]] = defaultdict(lambda: defaultdict(Tally))
        self._rng = random.Random("earns")

    async def ask(
        self, of: str, ask: Callable[[], Awaitable[SuggestResponse]], call: Json, judge: Judge
    ) -> None:
        """One question of a set."""
        self.sets[of] += 1
        with traced(self.functions) as fired:
            whole = _first(call, await ask())
        right, harmful = await judge(whole)
        for number in sorted(fired):
            function = self.functions[number]
            tally = self.tallies[function.name][of]
            tally.fired += 1
            is_needed = tally.counts["lost"] >= _CLEARLY or tally.counts["broken"] >= _CLEARLY
            if is_needed or tally.asked >= self.most or self._rng.random() > self._share(tally):
                continue
            tally.asked += 1
            with without(function):
                try:
                    other = _first(call, await ask())
                except Exception:  # noqa: BLE001  # it cannot do without it
                    tally.counts["broken"] += 1
                    continue
            if other == whole:
                continue
            tally.counts["changed"] += 1
            its_right, its_harmful = await judge(other)
            tally.counts["lost"] += right and not its_right
            tally.counts["gained"] += its_right and not right
            for name, answer, is_right in (("before", whole, right), ("after", other, its_right)):
                if answer.sure > SURE:
                    tally.counts[f"sure {name}"] += 1
                    tally.counts[f"sure and wrong {name}"] += not is_right
            tally.counts["wrong by itself"] += its_harmful and not harmful

    def _share(self, tally: Tally) -> float:
        """All of the first ones, then fewer, so that a set's later questions are asked, too."""
        return 1.0 if tally.asked < self.most / 2 else 0.15

    def save(self, file: Path) -> None:
        """Write all that was counted."""
        rows = {
            name: {of: [t.fired, t.asked, dict(t.counts)] for of, t in sets.items()}
            for name, sets in self.tallies.items()
        }
        lines = {each.name: each.lines for each in self.functions}
        whole = {"sets": self.sets, "lines": lines, "functions": rows}
        file.write_text(json.dumps(whole, indent=1), encoding="utf-8")


def _first(call: Json, answer: SuggestResponse) -> First:
    if not answer.suggestions:
        return First(None, "abstained", 0.0, safe=False)
    first = answer.suggestions[0]
    sent = None
    if first.action == "change_parameters":
        sent = apply_changes(call, first.changes)
    return First(sent, first.action, round(first.confidence, 3), bool(first.safe))


# The sets


async def of_world(
    survey: Survey, embedder: Embedder, world: kinds.World, stride: int, at: int
) -> None:
    """The developed kinds of mistakes in a world, with the schemas and without."""
    older, test = split(world.dataset.sessions())
    whole = world.name in ("BFCL", "GitHub")
    families = [
        each for each in kinds.FAMILIES
        if each not in (*kinds.KEPT, *kinds.UNFITTED) and (whole or each in kinds.EVERYWHERE)
    ]  # fmt: skip
    asked = kinds.trials(world, test, families)[at::stride]
    for with_schema in (True, False):
        async with open_brain(embedder) as brain:
            recording = await history(world.dataset, older, with_schema=with_schema)
            await brain.learn(recording.executions)
            known: set[str] = set()
            for trial in asked:
                await record_earlier(brain, trial, known)
                call = failed_call(trial, with_schema=with_schema)
                never = trial.damage.parameter in kinds.NEVER
                of = f"{world.name}{'' if with_schema else ', no schema'}"

                async def judge(
                    of: First, trial: Trial = trial, *, never: bool = never
                ) -> tuple[bool, bool]:
                    if never:
                        return of.sent is None or of.sure < kinds.GUESS, of.follows
                    right = of.sent is not None and await trial.judge(of.sent) == "right"
                    return right, of.follows and not right

                await survey.ask(of, _asking(brain, call, None), trial.damaged, judge)


def _asking(
    brain: Brain, call: FailedCall, hints: ToolAnnotations | None
) -> Callable[[], Awaitable[SuggestResponse]]:
    request = SuggestRequest(execution=call, annotations=hints)
    return lambda: brain.suggester.preview(WORKSPACE, request)


async def of_traps(survey: Survey, embedder: Embedder, at: int, stride: int) -> None:
    """Calls whose obvious repair does harm, and those whose repair must not wait."""
    for part in ("traps", "harmless"):
        for is_taught in (False, True):
            chosen = [each for each in traps.cases(part) if bool(each.taught) == is_taught]
            async with open_brain(embedder) as brain:
                if is_taught:
                    await brain.learn(traps._lessons(chosen))  # noqa: SLF001  # the same bench
                for case in chosen[at::stride]:
                    for way in traps._ways_of(case, traps.WAYS):  # noqa: SLF001  # as above
                        await _of_trap(survey, brain, part, case, way)


async def _of_trap(
    survey: Survey, brain: Brain, part: str, case: traps.Case, way: traps.Way
) -> None:
    hints = case.tool.hints if way.with_hints else None
    error = {"message": traps.refusal(case, way.wording)}
    if way.wording == "plain" and case.error is None:
        error["code"] = "-32602"
    fields = {
        "agent": "asker", "tool_name": case.tool.name, "server_name": case.tool.server,
        "parameters": case.parameters, "error": error, "context": case.context,
        "input_schema": case.tool.schema if way.with_schema else None,
    }  # fmt: skip

    async def judge(of: First) -> tuple[bool, bool]:
        asked = traps.Asked(case, way, [of.sent] if of.sent and of.follows else [])
        good = of.sent is not None and any(same_json(of.sent, each) for each in case.right)
        return good if case.right else not asked.wrong, asked.wrong

    call = FailedCall.model_validate(fields)
    await survey.ask(part, _asking(brain, call, hints), case.parameters, judge)


async def of_natural(survey: Survey, embedder: Embedder, name: str, stride: int) -> None:
    """Natural failures in time order; all before each are learned."""
    traces = sorted(
        natural.rows(name, "traces"),
        key=lambda row: (row["timestamp"] or "", row["session"], row["seq"]),
    )
    repairs = {
        (row["session"], row["failed_seq"]): row["corrected_parameters"]
        for row in natural.rows(name, "repairs")
        if row["likely_repair"]
    }
    count = 0
    async with open_brain(embedder) as brain:
        recording = Recording([])
        for row in traces:
            error = row["error"] and {"message": row["error"]["message"]}
            if row["outcome"] == "failure":
                count += 1
            if row["outcome"] == "failure" and count % stride == 0:
                await brain.learn(recording.executions)
                recording = Recording([], recording.now, recording.count)
                meant = repairs.get((row["session"], row["seq"]))

                async def judge(
                    of: First, meant: Json | None = meant, failed: Json = row["parameters"]
                ) -> tuple[bool, bool]:
                    if meant is None:
                        return of.sent is None or of.sure <= SURE, of.follows
                    changed = natural._changed  # noqa: SLF001  # the same bench
                    right = of.sent is not None and changed(failed, of.sent) == changed(
                        failed, meant
                    )
                    return right, of.follows and of.sent != meant

                call = natural.failed_call(row, error)
                await survey.ask(name, _asking(brain, call, None), row["parameters"], judge)
            recording.add(
                agent=row["agent"], session=row["session"], tool=row["tool"],
                server=row["server"], parameters=row["parameters"],
                context=row["context"] or "", schema=None, error=error, result=row.get("result"),
            )  # fmt: skip


async def of_mistakes(survey: Survey, embedder: Embedder) -> None:
    """Agents' mistakes on real servers: nothing learned, and mended by another agent before."""
    if not mistakes.available():
        print(mistakes.MISSING)
        return
    async with servers.open_servers(mistakes.WORLD) as running:
        found, _ = await mistakes.mistakes(running)
        for name, at in (("servers", 0), ("servers, mended before", 2)):
            async with open_brain(embedder) as brain:
                recording = Recording([])
                for number in range(at):
                    for place, each in enumerate(found):
                        mistakes._correct(  # noqa: SLF001  # the same bench
                            recording, each.times[number], f"agent-{number}", f"{number}/{place}"
                        )
                await brain.learn(recording.executions)
                for each in found:
                    trial = each.times[at]

                    async def judge(of: First, trial: Trial = trial) -> tuple[bool, bool]:
                        right = of.sent is not None and await trial.judge(of.sent) == "right"
                        return right, of.follows and not right

                    call = failed_call(trial, with_schema=True)
                    await survey.ask(name, _asking(brain, call, trial.hints), trial.damaged, judge)


# The page


def page(files: Sequence[Path]) -> str:
    """The table of what was kept by `Survey.save`, what earns least first."""
    sets: dict[str, int] = {}
    lines: dict[str, int] = {}
    tallies: dict[str, dict[str, Any]] = defaultdict(dict)
    for file in files:
        kept = json.loads(file.read_text(encoding="utf-8"))
        sets |= kept["sets"]
        lines |= kept["lines"]
        for name, of in kept["functions"].items():
            tallies[name] |= of
    rows = {name: _row(tallies.get(name, {}), sets) for name in lines}
    idle = sorted(name for name, row in rows.items() if not row["fired"])
    few = sorted(
        (name for name, row in rows.items() if row["fired"] and not _earns(row)),
        key=lambda name: (-lines[name], name),
    )
    shown = [
        f"| {name} | {lines[name]} | {rows[name]['fired']} | {rows[name]['changed']} | "
        f"{rows[name]['lost']:.2f} | {rows[name]['gained']:.2f} | {rows[name]['wrong']:.2f} |"
        for name in few
    ]
    asked = ", ".join(f"{name} {count}" for name, count in sets.items())
    earning = len(lines) - len(idle) - len(few)
    return "\n".join([
        "# What each function earns", "",
        "`python -m bench.quality.earns` (its first lines say how it asks). Questions by set: "
        f"{asked}. Points are of the whole set, the most of any set; *wrong* are the sure answers "
        "that become wrong without it.", "",
        f"{earning} of {len(lines)} functions bring {_LEAST} points of right or of sure and wrong "
        "in some set, keep a call from being wrong by itself, or cannot be done without. The "
        "others:", "",
        "| function | lines | fired | changed | lost | gained | wrong |",
        "|---|---:|---:|---:|---:|---:|---:|", *shown, "",
        f"In no question: {', '.join(idle)}.", "",
    ])  # fmt: skip


_LEAST = 0.3


def _row(tallies: dict[str, Any], sets: dict[str, int]) -> dict[str, float]:
    row: dict[str, float] = Counter()
    for of, (fired, asked, counts) in tallies.items():
        share = 100 * fired / max(1, asked) / sets[of]
        wrong = counts.get("sure and wrong after", 0) - counts.get("sure and wrong before", 0)
        row["fired"] += fired
        row["changed"] += counts.get("changed", 0)
        row["needed"] += counts.get("broken", 0) + counts.get("wrong by itself", 0)
        for name, count in (
            ("lost", counts.get("lost", 0)), ("gained", counts.get("gained", 0)), ("wrong", wrong),
        ):  # fmt: skip
            row[name] = max(row[name], share * count)
    return row


def _earns(row: dict[str, float]) -> bool:
    return row["needed"] > 0 or max(row["lost"], row["wrong"]) >= _LEAST


async def main() -> None:
    """Ask the chosen sets, and keep what was counted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--page", type=Path, nargs="*", help="write earns.md of these files")
    parser.add_argument("--set", help="a world, traps, mistakes or natural traces")
    parser.add_argument("--stride", type=int, default=1, help="one question of so many")
    parser.add_argument("--at", type=int, default=0, help="the first of them")
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--into", type=Path, help="a JSON file")
    args = parser.parse_args()
    if args.page:
        (FOLDER / "earns.md").write_text(page(args.page), encoding="utf-8")
        return
    if args.set is None or args.into is None:
        parser.error("name a --set and a file to keep it --into, or a --page")
    survey = Survey(args.most)
    embedder = await open_embedder()
    try:
        if args.set == "traps":
            await of_traps(survey, embedder, args.at, args.stride)
        elif args.set == "mistakes":
            await of_mistakes(survey, embedder)
        elif args.set in natural.SETS:
            await of_natural(survey, embedder, args.set, args.stride)
        else:
            await of_world(survey, embedder, kinds.world_of(args.set), args.stride, args.at)
    finally:
        await embedder.close()
        survey.save(args.into)


if __name__ == "__main__":
    asyncio.run(main())
