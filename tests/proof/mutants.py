"""Does the suite see it when a sync, a commit, a rename, a cursor, a fence or a unique index fails?

    python -m tests.proof.mutants [--minutes 60] [--jobs 1] [--state FILE] [--only TEXT]
                                  [--write docs/figures/reliability.md] [--list]

Each such statement of the stores, of learning, of the service's files and of the recorder's spool
is taken out, or swapped with its neighbour, one at a time, in a copy of the tree; then the tests
that cover its module run, the quick ones first, until one fails. A mutant that none of them sees
is named, with its reason where it has one (`mutants.toml`). A run that has a `--state` file goes on
where the last one ended.
"""

import argparse
import ast
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from tests.proof.crash_points import written_into
from tests.proof.mutant_finder import ROOT, Mutant, mutants

_PARTS = ("sdk/aftercall", "mongo", "ingest", "retrieval", "service", "embeddings", "tests")
_SUITE = (
    "tests/mongo tests/proof -m 'not prove'", "tests/ingest",
    "tests/sdk/test_spool.py tests/sdk/test_events_sinks.py tests/sdk/test_recorder.py "
    "tests/gateway/test_local_service.py tests/service/test_keys.py tests/service/test_archive.py "
    "tests/service/test_forget.py tests/service/test_opening.py tests/service/test_promotions.py "
    "tests/service/test_answered_elsewhere.py tests/service/test_boundary_stories.py",
    "tests/service/test_rebuild.py tests/service/test_nightly.py tests/service/test_patterns.py "
    "tests/service/test_toolbox.py",
    "tests/service/test_recalibration.py",
)  # fmt: skip
"""What is traced, in parts: which of these tests come to a statement."""
_UNTRACED = {
    "mongo/sqlite": ("tests/mongo -k 'contract and not mongodb'",),
    "mongo/mongodb": (
        "tests/mongo/test_mongodb_faults.py", "tests/mongo -k 'contract and not sqlite'",
    ),
}  # fmt: skip
"""For what no function does, such as the definition of an index."""
_FIRST_S, _MOST = 8.0, 150
"""Of the quick tests that come to a statement so many run first, then three times as many."""
_ENOUGH_S, _PATIENCE_S = 75, 280


# Running.


_TRACER = """
def _reached(line, known=set()):
    import os
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if test and (test, line) not in known:
        known.add((test, line))
        with open({log!r}, "a") as log:
            log.write({path!r} + f":{{line}}\\t{{test}}\\n")
"""


def _traced(text: str, path: str, lines: set[int], log: Path) -> str:
    """A module that writes down which test comes to which of its lines, in whatever process."""
    tree = ast.parse(text)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    wanted: dict[ast.stmt, list[int]] = {}
    for line in lines:
        around = [s for s in statements if s.lineno <= line <= (s.end_lineno or 0)]
        innermost = max(around, key=lambda s: (s.lineno, s.col_offset))
        wanted.setdefault(innermost, []).append(line)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for each in [s for s in block if s in wanted] if isinstance(block, list) else ():
                at = block.index(each)
                block[at:at] = [ast.parse(f"_reached({n})").body[0] for n in wanted[each]]
    tracer = ast.parse(_TRACER.format(log=str(log), path=path)).body
    tree.body[1:1] = tracer  # after the docstring, which each module has
    return ast.unparse(ast.fix_missing_locations(tree))


Reached = dict[str, dict[str, float]]
"""Of a mutant's name the tests that come to its statement, with their seconds."""


def trace(wanted: list[Mutant], part: str, jobs: int) -> Reached:
    """What a part of the suite comes to."""
    places: dict[str, dict[int, list[str]]] = {}
    for each in wanted:
        places.setdefault(each.path, {}).setdefault(each.line, []).append(each.name)
    with tempfile.TemporaryDirectory(prefix="aftercall-mutants-") as folder:
        tree, log = _copied(Path(folder) / "tree"), Path(folder) / "reached"
        log.touch()
        for path, lines in places.items():
            if path.endswith(".py"):
                text = (tree / path).read_text("utf-8")
                (tree / path).write_text(_traced(text, path, set(lines), log), "utf-8")
        words = [*shlex.split(part), f"-n{jobs}", "--dist=loadfile", "--durations=0"]
        said = _pytest(tree, [*words, "-vv", "--durations-min=0"], 3_600)[1]
        took: dict[str, float] = {}
        for seconds, test in re.findall(r"(?m)^([\d.]+)s (?:setup|call|teardown) +(.*)$", said):
            took[test] = took.get(test, 0.0) + float(seconds)
        reached: Reached = {}
        for line in log.read_text("utf-8").splitlines():
            place, _, test = line.partition("\t")
            path, _, number = place.rpartition(":")
            for name in places[path][int(number)]:
                reached.setdefault(name, {})[test] = took.get(test, 0.0)
        return reached


def _tests(one: Mutant, reached: Reached, tried: dict[str, Any]) -> Iterator[list[str]]:
    """Groups of tests for a mutant: those that saw it or its neighbours, quick ones, all others."""
    left = dict(sorted(reached[one.name].items(), key=lambda each: each[1]))
    seers = Counter[str](each["by"] for name, each in tried.items() if name.startswith(one.path))
    first = [tried.get(one.name, {}).get("by"), *(by for by, _ in seers.most_common(8))]
    if known := [by for by in dict.fromkeys(first) if left.pop(by, None) is not None]:
        yield known
    budget, group, total = _FIRST_S, list[str](), 0.0
    for test, seconds in left.items():
        if group and (total + seconds > budget or len(group) == _MOST):
            yield group
            budget, group, total = 3 * budget, [], 0.0
        group.append(test)
        total += seconds
    if group:
        yield group
    if not reached[one.name]:
        groups = next((g for path, g in _UNTRACED.items() if one.path.startswith(path)), ())
        yield from map(shlex.split, groups)


def _copied(folder: Path) -> Path:
    for part in _PARTS:
        shutil.copytree(
            ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "golden")
        )
    for name in ("pyproject.toml", "docs", "tests/golden", "notebooks"):
        (folder / name).symlink_to(ROOT / name)
    return folder


_PLUGINS = ("-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-p", "xdist.plugin")


def _pytest(tree: Path, words: Sequence[str], patience_s: float) -> tuple[int | None, str]:
    """How it ended, None where it never does, and what it said."""
    environ = {
        **os.environ,
        "PYTHONPATH": f"{tree}:{tree / 'sdk'}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # some of them take seconds to import
    }
    process = subprocess.Popen(  # our own tests
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_PLUGINS, "--tb=no", *words],
        cwd=tree, env=environ, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    return process.returncode, said


def seen_by(tree: Path, words: Sequence[str]) -> str | None:
    """The test that fails in a tree; None where none does."""
    status, said = _pytest(tree, ["-x", "--timeout=120", "-rfE", "-vv", *words], _PATIENCE_S)
    if status in (0, 5):
        return None
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
    began = re.findall(r"^(tests/.+?::.+?)(?: (?:PASSED|FAILED|SKIPPED).*| )?$", said, re.MULTILINE)
    return [*words[:1], *began, *failed[:1]][-1]  # the last one to begin never ends


def run(
    wanted: list[Mutant], state: dict[str, Any], *, jobs: int, minutes: float, keep: Path | None
) -> None:
    """Try those that the state does not know yet; it is kept after each.

    A test that fails must fail again, and pass without the mutant; else the next tests decide. At
    first no mutant gets more than some minutes; those that are left get all tests in the end.
    """
    ends = time.monotonic() + 60 * minutes
    files = {word for part in _SUITE for word in shlex.split(part) if word.startswith("tests/")}
    known = set(_pytest(ROOT, ["--collect-only", *files], _PATIENCE_S)[1].splitlines())
    reached: Reached = {each.name: {} for each in wanted}
    for name, part in product(reached, state["reached"].values()):
        of_part = dict(part.get(name, {})).items()
        reached[name] |= {test: s for test, s in of_part if test in known}  # not renamed since
    tried = state["tried"]
    new = [each for each in wanted if tried.get(each.name, {}).get("of") != _mark(each)]
    new.sort(key=_mark)  # whatever share is tried is spread over all
    queue = new + [m for m in wanted if m not in new and tried[m.name]["by"] is None]
    sound: dict[str, bool] = state.setdefault("sound", {})

    def seen(tree: Path, file: Path, one: Mutant) -> str | None:
        before, began = file.read_text("utf-8"), time.monotonic()
        for tests in _tests(one, reached, tried):
            if one in new and time.monotonic() - began > _ENOUGH_S:
                break
            _put(file, one.text)
            by = seen_by(tree, tests)
            again = [by] if by and "::" in by else tests
            is_again = by is not None and seen_by(tree, again) is not None
            _put(file, before)
            if by is None:
                continue
            if is_again and by not in sound:
                sound[by] = seen_by(tree, again) is None
            if is_again and sound[by]:
                return by
            sys.stdout.write(f"{by} fails without any mutant too, or not always\n")
        return None

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="aftercall-mutants-") as folder:
            tree = _copied(Path(folder) / "tree")
            while queue and time.monotonic() < ends:
                one = queue.pop(0)
                began = time.monotonic()
                by = seen(tree, tree / one.path, one)
                took = round(time.monotonic() - began)
                tried[one.name] = {"of": _mark(one), "kind": one.kind, "by": by, "s": took}
                sys.stdout.write(f"{by or 'NOT SEEN'} | {took} s | {one.name} :{one.line}\n")
                sys.stdout.flush()
                _kept(state, keep)

    with ThreadPoolExecutor(jobs) as pool:
        for each in [pool.submit(work) for _ in range(jobs)]:
            each.result()


def _put(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")
    for old in file.parent.glob(f"__pycache__/{file.stem}.*"):  # it may be of the same second
        old.unlink()


def _kept(state: dict[str, Any], file: Path | None) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(state, indent=1), "utf-8")


def _mark(one: Mutant) -> str:
    return sha256(one.text.encode()).hexdigest()[:12]


def reasons() -> dict[str, str]:
    """Why a mutant is not seen, by its name: what stands in `mutants.toml`."""
    path = Path(__file__).with_suffix(".toml")
    return {each["name"]: each["why"] for each in tomllib.loads(path.read_text())["unseen"]}


def report(wanted: list[Mutant], state: dict[str, Any]) -> str:
    """The part of `docs/figures/reliability.md` about mutants."""
    tried = [(m, state["tried"][m.name]) for m in wanted if m.name in state["tried"]]
    why = reasons()
    lines = [_HEAD]
    for kind in sorted({each.kind for each in wanted}):
        own = [(m, s) for m, s in tried if m.kind == kind]
        caught = sum(s["by"] is not None for _, s in own)
        total = sum(m.kind == kind for m in wanted)
        lines.append(f"| {kind} | {total} | {len(own)} | {caught} |")
    caught = sum(s["by"] is not None for _, s in tried)
    share = f" ({caught / len(tried):.1%})" if tried else ""
    lines += [f"| all | {len(wanted)} | {len(tried)} | {caught}{share} |", "", "Not seen:", ""]
    lines += [
        f"- `{m.name}`: {why.get(m.name, 'no reason known: a test is missing')}"
        for m, s in tried
        if s["by"] is None
    ]
    return "\n".join([*lines, ""])


ASKED = 0.95
"""Of the mutants that were tried, to be seen; with fewer, the command fails."""
_HEAD = """## Mutants

`python -m tests.proof.mutants`: each statement taken out, or swapped with its neighbour.

| statement | mutants | tried | seen |
|---|---:|---:|---:|"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="until no new one is begun")
    parser.add_argument("--jobs", type=int, default=1, help="trees at a time (1)")
    parser.add_argument("--only", default="", help="those whose name has this text")
    parser.add_argument("--state", type=Path, help="go on where this file says, and keep it so")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the table, as Markdown")
    parser.add_argument("--list", action="store_true", help="name them all, and do nothing")
    args = parser.parse_args()
    wanted = [each for each in mutants() if args.only in each.name]
    if args.list:
        sys.stdout.writelines(f"{m.kind:7}{m.path}:{m.line} {m.how}: {m.what}\n" for m in wanted)
        return
    state: dict[str, Any] = {"reached": {}, "tried": {}}
    if args.state and args.state.exists():
        state |= json.loads(args.state.read_text("utf-8"))
    for part in _SUITE:
        if part not in state["reached"]:
            state["reached"][part] = trace(mutants(), part, args.jobs)
            _kept(state, args.state)
            sys.stdout.write(f"traced: {part}\n")
    run(wanted, state, jobs=args.jobs, minutes=args.minutes, keep=args.state)
    table = report(mutants(), state)
    sys.stdout.write(table)
    if args.write:
        written_into(args.write, table)
    results = [state["tried"][m.name]["by"] for m in mutants() if m.name in state["tried"]]
    if results and sum(by is not None for by in results) < ASKED * len(results):
        raise SystemExit(f"less than {ASKED:.0%} of the mutants are seen")


if __name__ == "__main__":
    main()
