"""The benchmarks' data: found in one place, named where it is missing, listed with its version."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import get_args

import pytest

from bench import data
from bench.quality import choosing_data, github, natural, seal
from tests.conftest import NO_DATA

README = Path(__file__).parents[2] / "bench" / "README.md"
ROW = re.compile(r"^\| `(?P<file>\S+)` \| (?P<rows>[\d,]+) \| `(?P<version>[0-9a-f]{12})` \| .+")
ROWS = [
    found for line in README.read_text(encoding="utf-8").splitlines() if (found := ROW.match(line))
]
EACH_FILE = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder without data, to which the benchmarks are pointed."""
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    return tmp_path


def require(*names: str) -> None:
    """Skip the test where the data is missing; fail where the variable says that it is there."""
    if not data.is_there(*names):
        (pytest.fail if data.VARIABLE in os.environ else pytest.skip)(NO_DATA)


def test_the_variable_names_the_folder(no_data: Path) -> None:
    assert data.path("field/mcp.jsonl") == no_data / "field" / "mcp.jsonl"
    assert not data.is_there("field")
    (no_data / "field").mkdir()
    assert data.is_there("field")


def test_what_is_missing_is_named_in_one_line(no_data: Path) -> None:
    """It says what, why, and where it stands how to get it."""
    (no_data / "one.jsonl.gz").touch()
    line = data.left_out("A set", "one.jsonl.gz", "two.jsonl.gz")
    assert "one" not in line
    for word in ("A set is left out", "two.jsonl.gz", data.VARIABLE, "bench/README.md"):
        assert word in line
    assert "\n" not in line
    with pytest.raises(FileNotFoundError, match="two is left out"):
        list(data.rows("two.jsonl.gz"))


@pytest.mark.usefixtures("no_data")
async def test_a_benchmark_without_its_data_leaves_it_out() -> None:
    from bench.quality import datasets, worlds

    async with datasets.open_dataset("github") as dataset:
        assert dataset is None
    assert github.FILE in datasets.left_out("github")
    assert choosing_data.load("metatool") is None
    assert not {"GitHub", "Seal-Tools"} & {world.name for world in worlds.worlds()}
    with pytest.raises(SystemExit, match="Seal-Tools is left out"):
        worlds.world_of("Seal-Tools")


def test_the_readme_lists_every_file_that_is_read() -> None:
    read = {github.FILE, *seal.FILES}
    read |= {file for name in choosing_data.SETS for file in choosing_data.files_of(name)}
    read |= {file for name in natural.SETS for file in natural.files_of(name)}
    assert read == {row["file"] for row in ROWS}


@pytest.mark.data
@EACH_FILE
def test_the_data_is_of_the_version_that_the_readme_names(row: re.Match[str]) -> None:
    require(row["file"])
    found = hashlib.sha256(data.path(row["file"]).read_bytes()).hexdigest()
    assert found.startswith(row["version"])
    assert len(list(data.rows(row["file"]))) == int(row["rows"].replace(",", ""))


@pytest.mark.data
def test_the_sets_are_read_whole() -> None:
    require(*(row["file"] for row in ROWS))
    for name in choosing_data.SETS:
        chosen = choosing_data.load(name)
        assert chosen is not None
        assert chosen.train
        assert chosen.test
    assert len(github.schemas()) == 117
    assert len(seal.schemas()) == 4_076


@pytest.mark.data
@pytest.mark.parametrize("name", ["GitHub", "Seal-Tools"])
def test_what_was_put_aside_is_of_calls_that_are_there(name: str) -> None:
    """What is meant fits the tool's schema, and what is asked is another call."""
    from bench.quality import github, held, worlds

    require(github.FILE, *seal.FILES)
    world = worlds.world_of(name)
    for part in get_args(held.Part):
        asked = held.held_trials(world, part)
        assert len(asked) > 500
        assert len({each.tool for each in asked}) > 30
        for each in asked:
            assert each.schema is not None
            assert json.dumps(each.damaged) != json.dumps(each.gold)  # `1` is another call
            errors = seal.errors_of if name == "Seal-Tools" else github.error_of
            assert not errors(each.tool, each.gold), each.damage
        assert held.held_history(world, part, with_schema=True).executions
