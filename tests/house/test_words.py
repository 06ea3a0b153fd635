"""Words and sizes of the house: docstrings are sentences, phrases are plain, modules are topics."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("embeddings", "ingest", "mongo", "retrieval", "sdk", "service")
FRAGMENTS = frozenset(
    [
        "The",
        "A",
        "An",
        "What",
        "Whatever",
        "Whether",
        "How",
        "Those",
        "All",
        "Of",
        "Which",
        "Where",
        "That",
        "Each",
        "One",
        "Every",
        "Both",
        "Whose",
        "Who",
        "When",
        "As",
        "By",
        "For",
        "In",
        "With",
        "Without",
        "None",
        "Nothing",
        "This",
        "These",
        "Some",
        "Several",
        "Other",
        "Another",
        "No",
        "Names",
        "Texts",
        "Values",
    ]
)
"""First words of a docstring that names a thing and does not say what the function does."""
ODD = re.compile(
    r"\btold\b|\btells?\b|\bsaid\b|\bsays\b|\bheard\b|\b(?:no|some|any|every)body\b|\bwhoever\b"
    r"|\bmend(?:s|ed|ing)?\b|\banew\b|\bbeside\b|\bat hand\b|\bis none\b|\bof which\b|\bin vain\b"
    r"|\bstrangers?\b|\bthe night\b|\bwho asks\b|\bwho looks\b",
    re.IGNORECASE,
)
"""Phrases that a reader who learned English late has to read twice."""
PLAIN = frozenset(
    [
        "main",
        "run",
        "get",
        "put",
        "post",
        "delete",
        "list",
        "create",
        "update",
        "close",
        "open",
        "start",
        "stop",
        "load",
        "save",
        "read",
        "write",
        "add",
        "remove",
        "append",
        "commit",
        "send",
        "wait",
        "setup",
        "parse",
    ]
)
"""Names of one word that say enough."""
MOST_FRAGMENTS, MOST_ODD, MOST_ONE_WORD, MOST_LINES = 20, 40, 280, 600
"""What is left of them, to be lowered and never raised; lines of a module."""


def sources() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each module of the product that nobody generated."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{package}/*.py" for package in PACKAGES)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for path in listed.stdout.split():
        if "_generated" not in path:
            yield path, (ROOT / path).read_text(encoding="utf-8")


def prose_of(text: str) -> str:
    """Return the comments and docstrings of a module."""
    tree = ast.parse(text)
    documented = ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef | ast.Module
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    parts = [ast.get_docstring(node) or "" for node in nodes]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join([*parts, *(each.string for each in tokens if each.type == tokenize.COMMENT)])


def test_docstrings_of_functions_begin_with_what_they_do() -> None:
    """`Return ...`, `Read ...`, `Yield ...`; a property may begin with a noun."""
    found = [
        f"{path}:{node.lineno}"
        for path, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (said := ast.get_docstring(node))
        and said.split()[0].strip("`*.,:;") in FRAGMENTS
    ]
    assert len(found) <= MOST_FRAGMENTS, found[-10:]


def test_comments_and_docstrings_are_plain() -> None:
    """No phrase that has to be read twice."""
    found = [match[0] for _, text in sources() for match in ODD.finditer(prose_of(text))]
    assert len(found) <= MOST_ODD, len(found)


def test_functions_are_named_by_a_verb_and_its_object() -> None:
    """`read_schema`; one word is for what a library or the wire asks for."""
    found = [
        f"{path}:{node.lineno} {node.name}"
        for path, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and re.fullmatch(r"_?[a-z]+", node.name)
        and node.name not in PLAIN
    ]
    assert len(found) <= MOST_ONE_WORD, found[-10:]


def test_a_module_is_a_topic() -> None:
    """And never a book."""
    long = [path for path, text in sources() if len(text.splitlines()) > MOST_LINES]
    assert not long
