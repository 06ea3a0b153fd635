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
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.proof.crash_points import written_into

ROOT = Path(__file__).parents[2]
_PARTS = ("sdk/aftercall", "mongo", "ingest", "retrieval", "service", "embeddings", "tests")
_FILES = (
    "mongo/sqlite/*.py", "mongo/sqlite/*.sql", "mongo/mongodb/*.py", "ingest/*.py", "service/*.py",
    "sdk/aftercall/recording/*.py", "sdk/aftercall/files.py",
)  # fmt: skip
_TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mongo/sqlite/control", (
        "tests/mongo/test_control_contract.py", "tests/proof/test_power.py",
        "tests/service/test_keys.py",
    )),
    ("mongo/mongodb/control", ("tests/mongo/test_control_contract.py",)),
    ("mongo/sqlite", (
        "tests/mongo -m 'not real' -k 'not mongodb'", "tests/proof/test_power.py",
        "tests/proof/test_histories.py -k sqlite", "tests/ingest/test_several_processes.py",
        "tests/mongo -k 'not mongodb'", "tests/proof/test_crash_points.py",
    )),
    ("mongo/mongodb", (
        "tests/mongo -k 'not sqlite'", "tests/ingest/test_several_processes.py",
        "tests/proof/test_histories.py -k mongodb", "tests/service/test_answered_elsewhere.py",
    )),
    ("ingest/nightly", ("tests/service/test_nightly.py", "tests/proof/test_crash_points.py")),
    ("ingest/axes", ("tests/ingest/test_axes.py", "tests/service/test_boundary_stories.py")),
    ("ingest/rebuild", ("tests/service/test_rebuild.py", "tests/service/test_nightly.py")),
    ("ingest/leases", ("tests/ingest/test_leases.py", "tests/ingest/test_several_processes.py")),
    ("ingest", (
        "tests/ingest/test_leases.py", "tests/ingest/test_fold.py",
        "tests/ingest/test_several_processes.py",
        "tests/service/test_rebuild.py", "tests/proof/test_histories.py",
    )),
    ("service/archive", (
        "tests/proof/test_power.py", "tests/service/test_archive.py",
        "tests/proof/test_crash_points.py",
    )),
    ("service/forget", ("tests/service/test_forget.py", "tests/proof/test_crash_points.py")),
    ("service/keys", ("tests/service/test_keys.py",)),
    ("service", (
        "tests/service/test_opening.py", "tests/service/test_rebuild.py",
        "tests/service/test_nightly.py", "tests/service/test_patterns.py",
        "tests/service/test_promotions.py", "tests/service/test_toolbox.py",
    )),
    ("sdk", (
        "tests/proof/test_power.py", "tests/sdk/test_spool.py", "tests/sdk/test_events_sinks.py",
        "tests/sdk/test_recorder.py", "tests/service/test_keys.py",
        "tests/gateway/test_local_service.py", "tests/proof/test_crash_points.py",
    )),
)  # fmt: skip
"""Which tests see a module (the longest beginning of its path), the quick ones first."""
_PATIENCE_S = 280
_CALLS = {
    "sync": {"fsync", "sync_folder"},
    "commit": {"commit", "finish", "_apply", "_bury", "_settled", "settled", "_roll_back"},
    "rename": {"rename", "replace", "link"},
    "fence": {"_check_fence", "flock", "FolderLock", "refuse_half_imported"},
}
_STORED = {"cursors", "heads", "mark", "leases", "log", "journal", "state"}
_WRITES = {"update_one", "find_one_and_update", "insert_one", "delete_many", "delete_one"}
_SQL = re.compile(
    r"\b(BEGIN|COMMIT|ROLLBACK)\b"
    r"|(?:INTO|UPDATE|DELETE FROM) (cursors|heads|fences|counts|state|leases|metadata|head)\b"
)
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
    (re.compile(r"(?<= AND )(holder|token) = \?"), "? IS NOT NULL", "fence"),
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
        for node in ast.walk(ast.parse(text)):
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
                if not (isinstance(other, ast.Expr) and isinstance(other.value, ast.Constant)):
                    swap = [(statement, self._of(other)), (other, self._of(statement))]
                    self._add(kind, "swapped", statement, swap)

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


def _tests(path: str) -> tuple[str, ...]:
    return max((each for each in _TESTS if path.startswith(each[0])), key=lambda e: len(e[0]))[1]


def _copied(folder: Path) -> Path:
    for part in _PARTS:
        shutil.copytree(
            ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "golden")
        )
    for name in ("pyproject.toml", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def seen_by(tree: Path, tests: tuple[str, ...]) -> tuple[str, str] | None:
    """The group of tests and the test in it that fails in a tree; None where none does."""
    environ = {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'sdk'}", "PYTHONDONTWRITEBYTECODE": "1"}
    for each in tests:
        words = shlex.split(each)
        if not (tree / words[0]).exists():
            continue
        process = subprocess.Popen(  # our own tests
            [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no",
             "--timeout=120", "-rfE", *words],
            cwd=tree, env=environ, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return each, f"{words[0]} (it never ends)"
        if process.returncode not in (0, 5):
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
            return each, failed[1] if failed else f"{words[0]} ended with {process.returncode}"
    return None


def run(
    wanted: list[Mutant], state: dict[str, Any], *, jobs: int, minutes: float, keep: Path | None
) -> None:
    """Try those that the state does not know yet; it is kept after each."""
    ends = time.monotonic() + 60 * minutes
    new = [each for each in wanted if state.get(each.name, {}).get("of") != _mark(each)]
    new.sort(key=_mark)  # whatever share is tried is spread over all
    queue = new + [m for m in wanted if m not in new and state[m.name]["by"] is None]
    sound: set[str] = set()

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="aftercall-mutants-") as folder:
            tree = _copied(Path(folder))
            while queue and time.monotonic() < ends:
                one = queue.pop(0)
                file = tree / one.path
                before, began = file.read_text("utf-8"), time.monotonic()
                file.write_text(one.text, "utf-8")
                failed = seen_by(tree, _tests(one.path))
                file.write_text(before, "utf-8")
                group, by = failed or (None, None)
                if group is not None and group not in sound:
                    if seen_by(tree, (group,)):
                        sys.stdout.write(f"{group} fails without any mutant too\n")
                        continue
                    sound.add(group)
                took = round(time.monotonic() - began)
                state[one.name] = {"of": _mark(one), "kind": one.kind, "by": by, "s": took}
                sys.stdout.write(f"{by or 'NOT SEEN'} | {took} s | {one.name} :{one.line}\n")
                sys.stdout.flush()
                if keep is not None:
                    keep.write_text(json.dumps(state, indent=1), "utf-8")

    with ThreadPoolExecutor(jobs) as pool:
        for each in [pool.submit(work) for _ in range(jobs)]:
            each.result()


def _mark(one: Mutant) -> str:
    return sha256(one.text.encode()).hexdigest()[:12]


def reasons() -> dict[str, str]:
    """Why a mutant is not seen, by its name: what stands in `mutants.toml`."""
    path = Path(__file__).with_suffix(".toml")
    return {each["name"]: each["why"] for each in tomllib.loads(path.read_text())["unseen"]}


def report(wanted: list[Mutant], state: dict[str, Any]) -> str:
    """The part of `docs/figures/reliability.md` about mutants."""
    tried = [(each, state[each.name]) for each in wanted if each.name in state]
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
    state: dict[str, Any] = {}
    if args.state and args.state.exists():
        state = json.loads(args.state.read_text("utf-8"))
    run(wanted, state, jobs=args.jobs, minutes=args.minutes, keep=args.state)
    table = report(mutants(), state)
    sys.stdout.write(table)
    if args.write:
        written_into(args.write, table)


if __name__ == "__main__":
    main()
