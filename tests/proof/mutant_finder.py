"""Finds the statements that a crash, or another process, would show to be needed, as mutants.

Two kinds of swaps are not made, since no order of the two can be seen: of statements of one
transaction of SQLite that name different tables, and with a neighbour that only binds or counts in
memory what the statement does not use.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_FILES = (
    "mongo/sqlite/*.py", "mongo/sqlite/*.sql", "mongo/mongodb/*.py", "ingest/*.py", "service/*.py",
    "sdk/aftercall/recording/*.py", "sdk/aftercall/files.py",
)  # fmt: skip
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
