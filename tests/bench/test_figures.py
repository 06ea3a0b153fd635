"""Each page of figures says when it was made and by which command, and the command exists."""

import importlib
import re
from pathlib import Path

import pytest

from bench.figures import FOLDER, made_by, stamped, write_marked, write_section

ROOT = FOLDER.parents[1]
OF_OTHERS = {"README.md"}
"""Collects what the other pages have, with the command of each."""
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name not in OF_OTHERS)
MADE = re.compile(r"^(\d{4}-\d{2}-\d{2})[.,].*Made by `([^`]+)`", re.MULTILINE)
MODULE = re.compile(r"python -m ([\w.]+)")


def parts_of(page: Path) -> list[str]:
    """The page, or its sections where it says nothing before the first."""
    head, *sections = page.read_text(encoding="utf-8").split("\n## ")
    return [head] if MADE.search(head) or not sections else sections


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_its_day_and_its_command(page: Path) -> None:
    """And a command of ours is a module of the repository, or a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for part in parts_of(page):
        made = MADE.search(part)
        assert made is not None, part[:200]
        command = made[2]
        if module := MODULE.match(command):
            path = ROOT.joinpath(*module[1].split("."))
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), command
        elif command.startswith("make "):
            assert f"\n{command.removeprefix('make ')}:" in makefile, command
        else:
            assert command.startswith("pytest "), command
            assert (ROOT / command.split()[-1]).exists(), command


def test_a_page_of_quality_names_a_step_that_is_there() -> None:
    steps = importlib.import_module("bench.quality.__main__").STEPS
    named = [
        name for page in PAGES for part in parts_of(page)
        for name in re.findall(r"`python -m bench\.quality --only ([\w-]+)", part)
    ]  # fmt: skip
    assert named
    assert set(named) <= steps.keys()


def test_a_page_that_is_written_gets_its_line_below_the_title(tmp_path: Path) -> None:
    """A page that is left alone keeps its day."""
    old, page = tmp_path / "old.md", tmp_path / "new.md"
    old.write_text("# Old\n\n2026-01-01. Made by `make old`.\n\nText.\n")
    with stamped("python -m bench.new", tmp_path):
        page.write_text("# New\n\nText.\n")
    assert page.read_text() == f"# New\n\n{made_by('python -m bench.new')}\n\nText.\n"
    assert "2026-01-01" in old.read_text()
    with stamped("python -m bench.new", tmp_path):
        page.write_text("# New\n\n2026-01-02, a machine. Made by `make new`.\n")
    assert page.read_text().count("Made by") == 1


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    page = tmp_path / "peers.md"
    write_section(page, "One", "make one", "first")
    write_section(page, "Two", "make two", "second\n\n### Below it\n\ntext")
    others = page.read_text().partition("## Two")[2]
    write_section(page, "One", "make one", "third")
    text = page.read_text()
    assert text.startswith(f"# Peers\n\n## One\n\n{made_by('make one')}\n\nthird\n\n## Two\n")
    assert text.endswith(others)
    with stamped("make all", tmp_path):
        page.write_text(f"{text}\n")
    assert "make all" not in page.read_text()


def test_what_stands_between_marks_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- soak -->\nold\n<!-- /soak -->\nAfter.\n")
    write_marked(page, "soak", "| new |\n")
    assert page.read_text() == "Before.\n<!-- soak -->\n| new |\n<!-- /soak -->\nAfter.\n"
    with pytest.raises(ValueError, match="holdup"):
        write_marked(page, "holdup", "lost")
