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
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from tests.proof.crash_points import written_into

ROOT = Path(__file__).parents[2]
_PARTS = ("sdk/aftercall", "mongo", "ingest", "retrieval", "service", "embeddings", "tests")
_FILES = (
    "mongo/sqlite/*.py", "mongo/sqlite/*.sql", "mongo/mongodb/*.py", "ingest/*.py", "service/*.py",
    "sdk/aftercall/recording/*.py", "sdk/aftercall/files.py",
)  # fmt: skip
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
_CALLS = {
    "sync": {"fsync", "sync_folder"},
    "commit": {"commit", "finish", "apply_pending", "bury", "settled", "_roll_back"},
    "rename": {"rename", "replace", "link"},
    "fence": {"_check_fence", "flock", "FolderLock", "refuse_half_imported"},
}
_STORED = {"cursors", "heads", "mark", "leases", "log", "journal", "state"}
_WRITES = {"update_one", "find_one_and_update", "insert_one", "delete_many", "delete_one"}
_SQL = re.compile(
    r"\b(BEGIN|COMMIT|ROLLBACK)\b"
    r"|(?:INTO|UPDATE|DELETE FROM) (cursors|heads|fences|counts|state|leases|metadata|head)\b"
)
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN) (?!SET)(\w+)")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_REFUSALS = {
    "StoreFencedError", "StateConflictError", "StoreInUseError", "RebuildRefusedError",
    "NightlyLostError", "AlreadyImportedError",
}  # fmt: skip
_GUARDS = {
    "serial", "journal", "pending", "pending.id", "commands", "through", "first", "generation",
    "building.id", "token", "holder", "beat", "held",
}  # fmt: skip
"""Fields that a filter of MongoDB compares, so that a change which comes late does nothing."""
_TEXTS = (
    (re.compile(r"(?<= AND )(token) = \?"), "? IS NOT NULL", "fence"),
    (re.compile(r" AND held\b"), "", "fence"),
    (re.compile(r'synchronous="FULL"'), 'synchronous="NORMAL"', "sync"),
    (re.compile(r'"FULL" if number == 0 else "NORMAL"'), '"NORMAL"', "sync"),
    (re.compile(r", j=True"), "", "sync"),
    (re.compile(r'WriteConcern\("majority"'), "WriteConcern(1", "sync"),
    (re.compile(r'ReadConcern\("majority"\)'), 'ReadConcern("local")', "sync"),
    (re.compile(r"unique=True"), "unique=False", "index"),
    (re.compile(r"CREATE UNIQUE INDEX"), "CREATE INDEX", "index"),
    (re.compile(r"commit\.moved\[1\]"), "commit.moved[0]", "cursor"),
    (re.compile(r'"\$inc": \{"last": count\}'), '"$inc": {"last": 0}', "cursor"),
    (re.compile(r"position \+= 1\b"), "pass", "cursor"),
    (re.compile(r"received = max\(received, own\)"), "received = own", "cursor"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    path: str
    line: int
    kind: str
    how: str
    what: str
    """The statement, in short."""
    text: str
    """The whole file with it."""

    @property
    def name(self) -> str:
        """The same as long as the statement stands where it stood among its like."""
        return f"{self.path}: {self.how}: {self.what}"


def mutants(root: Path = ROOT) -> list[Mutant]:
    """All of them, without two of one name."""
    found: dict[str, Mutant] = {}
    for pattern in _FILES:
        for path in sorted(root.glob(pattern)):
            text = path.read_text("utf-8")
            of_file = [*_texts(text)]
            if path.suffix == ".py":
                of_file += _Finder(text).found
            for line, kind, how, what, changed in of_file:
                one = Mutant(
                    path.relative_to(root).as_posix(), line, kind, how,
                    " ".join(what.split())[:100], changed,
                )  # fmt: skip
                name, number = one.name, 1
                while name in found:
                    number += 1
                    name = f"{one.name} #{number}"
                found[name] = one
    return [
        Mutant(m.path, m.line, m.kind, m.how, name.split(": ", 2)[2], m.text)
        for name, m in found.items()
    ]


def swapped_in(text: str) -> list[str]:
    """The statements of a module that are swapped with a neighbour."""
    return [what for _, _, how, what, _ in _Finder(text).found if how == "swapped"]


Found = tuple[int, str, str, str, str]
_Change = tuple[ast.AST, str]


def _texts(text: str) -> Iterator[Found]:
    for pattern, instead, kind in _TEXTS:
        for match in pattern.finditer(text):
            start, end = match.span()
            line = text.count("\n", 0, start) + 1
            shown = f"{match[0].strip()} in {text.splitlines()[line - 1].strip()}"
            yield line, kind, "out", shown, text[:start] + instead + text[end:]


class _Finder:
    """The statements of one module that a crash, or another process, would show to be needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0]
        for line in text.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.found: list[Found] = []
        tree = ast.parse(text)
        self._inside: dict[ast.AST, _Function] = {}
        """Of what stands in a function, the innermost one."""
        self._functions: dict[str, _Function] = {}
        for each in [n for n in ast.walk(tree) if isinstance(n, _Function)]:
            self._functions[each.name] = each
            self._inside.update(dict.fromkeys(ast.walk(each), each))
        for node in ast.walk(tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    self._block(block)
            self._parts(node)

    def _block(self, block: list[ast.stmt]) -> None:
        for place, statement in enumerate(block):
            kind = _kind(statement)
            if kind is None:
                continue
            instead = "pass"
            if isinstance(statement, ast.Assign):
                instead = f"{self._of(statement.targets[0])} = 0"
            self._add(kind, "out", statement, [(statement, instead)])
            simple = ast.Expr | ast.Assign | ast.AugAssign | ast.For | ast.With | ast.If
            others = [*block[place + 1 : place + 2], *block[max(0, place - 1) : place]]
            for other in [each for each in others if isinstance(each, simple)][:1]:
                if not self._is_equal(statement, other):
                    swap = [(statement, self._of(other)), (other, self._of(statement))]
                    self._add(kind, "swapped", statement, swap)

    def _is_equal(self, one: ast.stmt, other: ast.stmt) -> bool:
        """Whether no order of these two can be seen, by a rule that is sure from the text alone."""
        if isinstance(other, ast.Expr) and isinstance(other.value, ast.Constant):
            return True  # a docstring
        function = self._inside.get(one)
        return function is not None and (
            _only_remembers(one, other, isinstance(function, ast.AsyncFunctionDef))
            or self._is_one_transaction(one, other, function)
        )

    def _is_one_transaction(self, one: ast.stmt, other: ast.stmt, function: _Function) -> bool:
        """Both are of the transaction that the caller began, and of different tables."""
        given = [each.arg for each in function.args.args[:1]] == ["connection"]
        tables = [self._tables(each) for each in (one, other)]
        return given and all(tables) and tables[0].isdisjoint(tables[1])

    def _tables(self, statement: ast.AST, depth: int = 1) -> set[str]:
        """Tables that its SQL names, with that of functions that get the connection."""
        found = set[str]()
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(_TABLE.findall(node.value))
            helper = self._functions.get(_called(node)) if isinstance(node, ast.Call) else None
            if helper is not None and depth:
                found |= self._tables(helper, depth - 1)
        return found

    def _parts(self, node: ast.AST) -> None:
        match node:
            case ast.If(test=test, body=[ast.Raise(exc=raised)]) if (
                isinstance(raised, ast.Call) and _called(raised) in _REFUSALS
            ):
                self._add("fence", "never", test, [(test, "False")])
            case ast.Call(keywords=keywords) if _called(node) == "Commit":
                for each in keywords:
                    if each.arg in ("moved", "lease"):
                        kind = "cursor" if each.arg == "moved" else "fence"
                        self._add(kind, "out", node, [(each, f"{each.arg}=None")])
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    call = item.context_expr
                    if isinstance(call, ast.Call) and _called(call) == "locked":
                        nothing = '__import__("contextlib").nullcontext()'
                        self._add("fence", "out", call, [(call, nothing)])
            case ast.Call(func=ast.Attribute(value=receiver, attr="rename")):
                self._add("rename", "out", node, [(node, self._of(receiver))])
            case ast.Dict():
                self._guards(node)
            case _:
                pass

    def _guards(self, node: ast.Dict) -> None:
        if not any(key is None or getattr(key, "value", None) == "_id" for key in node.keys):
            return
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in _GUARDS:
                rest = f"{self._of(key)}: {self._of(value)}"
                without = self._of(node).replace(rest, "**{}", 1)
                if without != self._of(node):
                    self._add("fence", f"without {key.value}", node, [(node, without)])

    def _add(
        self, kind: str, how: str, shown: ast.AST, changes: Sequence[tuple[ast.AST, str]]
    ) -> None:
        raw = self._text.encode()
        for node, instead in sorted(changes, key=lambda each: -self._span(each[0])[0]):
            start, end = self._span(node)
            raw = raw[:start] + instead.encode() + raw[end:]
        text = raw.decode()
        try:
            ast.parse(text)
        except SyntaxError:
            return
        line = getattr(shown, "lineno", 0)
        self.found.append((line, kind, how, self._of(shown), text))

    def _span(self, node: Any) -> tuple[int, int]:
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _of(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._text.encode()[start:end].decode()


def _only_remembers(one: ast.stmt, other: ast.stmt, is_async: bool) -> bool:
    """Whether the other one binds or counts in memory, and neither uses what the other binds.

    An async function does what leaves the process by an `await` alone; of another one no call is
    taken for harmless.
    """
    if not isinstance(other, ast.Assign | ast.AugAssign):
        return False
    leaves = ast.Await | ast.Yield if is_async else ast.Call
    if any(isinstance(node, leaves) for node in ast.walk(other)):
        return False
    return not (_meet(_bound(one), _used(other)) or _meet(_bound(other), _used(one)))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names, with their dots and without their places, that it binds."""
    for each in getattr(statement, "targets", [getattr(statement, "target", None)]):
        if each is not None:
            yield ast.unparse(each.value if isinstance(each, ast.Subscript) else each)


def _used(node: ast.AST) -> Iterator[str]:
    """Names with their dots that it uses or binds; of a method that is called, whose it is."""
    if isinstance(node, ast.Name | ast.Attribute):
        yield ast.unparse(node)
        base: ast.AST = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name):
            return
    for each in ast.iter_child_nodes(node):
        is_method = isinstance(node, ast.Call) and each is node.func
        yield from _used(each.value if is_method and isinstance(each, ast.Attribute) else each)


def _meet(names: Iterator[str], others: Iterator[str]) -> bool:
    """Whether one of them is one of the others, or a part of it."""
    return any(
        f"{b}.".startswith(f"{a}.") or f"{a}.".startswith(f"{b}.")
        for a, b in product(names, others)
    )


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _kind(statement: ast.stmt) -> str | None:
    """Which kind of statement it is; None for one that is of no interest."""
    if not isinstance(statement, ast.Expr | ast.Assign):
        return None
    value = statement.value
    call = value.value if isinstance(value, ast.Await) else value
    if not isinstance(call, ast.Call):
        return None
    name = _called(call)
    for kind, names in _CALLS.items():
        # A text that is replaced is kept, a file that is replaced is not.
        if name in names and (kind != "rename" or isinstance(statement, ast.Expr)):
            return kind
    if name in ("execute", "executemany") and isinstance(statement, ast.Expr) and call.args:
        texts = [n.value for n in ast.walk(call.args[0]) if isinstance(n, ast.Constant)]
        match = _SQL.search(" ".join(" ".join(map(str, texts)).split()))
        return None if match is None else "commit" if match[1] else "cursor"
    if name in _WRITES and isinstance(statement, ast.Expr):
        at = getattr(call.func, "value", None)
        if getattr(at, "attr", None) in _STORED:
            return "cursor"
    return None


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


if __name__ == "__main__":
    main()
