"""`docs/integrations.md`: its recipes are short, and work."""

import argparse
import os
import re
import shlex
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from aftercall.adapters import reflector
from tests.service.running_service import ROOT, RunningService

DOC = Path(__file__).parents[2] / "docs" / "integrations.md"
TEXT = DOC.read_text(encoding="utf-8")

LINES = 6
"""Of a recipe, without imports and what only closes a bracket: five, and one for a comment."""


def blocks(language: str) -> list[str]:
    """The blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_recipes_are_short() -> None:
    """What has to be written is five lines or so."""
    for block in [*blocks("python"), *blocks("sh"), *blocks("yaml")]:
        written = [line.strip() for line in block.splitlines()]
        counted = [
            line
            for line in written
            if line and line not in {")", "}"} and not line.startswith(("from ", "import "))
        ]
        assert len(counted) <= LINES, block


@pytest.mark.real
def test_the_python_works(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, one after the other, with the frameworks it names; calls are recorded."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("AFTERCALL_URL", service.url)
    reflector._open_process.cache_clear()
    monkeypatch.chdir(tmp_path)  # the recipe of events writes a file
    source = "\n".join(blocks("python")).replace("http://127.0.0.1:8799", service.url)
    source += "\ncounted = count_books('whales')\nrecorder.close()\nclient.close()\n"
    names: dict[str, Any] = {"__name__": "recipes"}
    exec(compile(source, str(DOC), "exec"), names)  # noqa: S102  # our own document
    own = reflector._open_process(os.getpid())
    reflector._open_process.cache_clear()
    assert own is not None
    for each in own:  # they end with the process
        each.close()
    assert names["counted"] == 6
    assert names["stream"] is not None
    recorded = service.client.get("/status").json()["executions"]
    assert recorded == 3  # the function's, the hooks' and that of the stream
    assert len((tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_the_commands_exist() -> None:
    """Every `aftercall` command, with every option that is shown of it."""
    shown = [
        shlex.split(line, comments=True)
        for block in blocks("sh")
        for line in block.splitlines()
        if "aftercall " in line and "pip install" not in line and "export " not in line
    ]
    assert len(shown) >= 8
    known: dict[str, str] = {}
    for project in (ROOT / "pyproject.toml", ROOT / "sdk" / "pyproject.toml"):
        declared = tomllib.loads(project.read_text())["project"]["entry-points"]
        known |= declared["aftercall.commands"]
    for words in shown:
        name = words[words.index("aftercall") + 1]
        parser = argparse.ArgumentParser()
        EntryPoint(name, known[name], "").load().add_arguments(parser)
        options = {word for word in words if word.startswith("--")}
        assert not {option for option in options if option not in parser.format_help()}, name


def test_links_lead_somewhere() -> None:
    """Files of the repository, and headings of the document."""
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in TEXT.splitlines()
        if line.startswith("## ")
    }
    for link in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        if link.startswith("#"):
            assert link[1:] in headings, link
        else:
            assert (DOC.parent / link).exists(), link
