"""docs/operations.md names what there is: tests, commands, settings, collections."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from aftercall.cli import discover_commands
from service.environment import OTHER_VARIABLES, PREFIX, list_settings, read_settings
from tests.deploy.compose_file import ROOT, variables

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def matrix() -> list[list[str]]:
    """The rows of the fault matrix, a list of cells each."""
    rows = TEXT.split("## Faults", 1)[1].splitlines()
    return [
        [cell.strip() for cell in row.strip("|").split(" | ")]
        for row in rows
        if row.startswith("|") and not row.startswith(("|---", "| fault |"))
    ]


@cache
def names_in(path: Path) -> set[str]:
    """The names of the tests in a file."""
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT)))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_every_test_of_the_fault_matrix_exists(file: str, test: str) -> None:
    """A row that names none that is there shows nothing."""
    assert (ROOT / file).is_file()
    assert test in names_in(ROOT / file)


def test_every_row_of_the_fault_matrix_names_a_test() -> None:
    """What happens, what cures it, and what shows it."""
    for row in matrix():
        assert len(row) == 4, row[0]
        assert all(row), row[0]
        assert re.search(r"`tests/[\w/]+\.py::test_\w+`", row[3]), row[0]


def test_the_commands_exist() -> None:
    """Every `aftercall WORD` that it names."""
    named = set(
        re.findall(r"\baftercall ([a-z][a-z-]+)\b", "\n".join(re.findall(r"`[^`]+`", TEXT)))
    )
    assert named
    assert named <= set(discover_commands())


def test_the_settings_exist() -> None:
    """Every variable that it names is a setting, of the compose file, or of the tests."""
    named = set(re.findall(r"\bAFTERCALL_[A-Z_]+[A-Z]\b", TEXT))
    known = {row.variable for row in list_settings(read_settings())} | set(variables())
    known |= OTHER_VARIABLES
    assert named <= known
    # `_KEPT_SHARE` behind the name of another of the same section.
    for row in TEXT.splitlines():
        if found := re.match(rf"\| `({PREFIX}[A-Z]+)_", row):
            for short in re.findall(r"`(_[A-Z_]+)`", row):
                assert f"{found[1]}{short}" in known


def test_every_collection_is_sharded_or_said_to_be_small() -> None:
    """None is forgotten, and none is named that is not there."""
    commands = TEXT.split("sh.shardCollection", 1)[1].split("```", 1)[0]
    named = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", commands))
    source = (ROOT / "mongo" / "mongodb" / "database.py").read_text(encoding="utf-8")
    assert named == set(re.findall(r'database\["(\w+)"\]', source))
