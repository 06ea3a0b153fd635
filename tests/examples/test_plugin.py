"""The example's plug-ins, installed, do what they are for; a broken one is left out and named."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftercall.extensions import load_plugins, load_tables
from retrieval.answers.proposers import registry
from retrieval.answers.proposers.case import Option
from retrieval.answers.proposers.registry import Proposer

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    yield
    load_plugins.cache_clear()
    load_tables.cache_clear()


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each plug-in made of an example, by its kind; the distribution is really installed."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
            "--no-deps", "--target", folder, ROOT / "examples" / "plugin",
        ],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.examples.use_plugins"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (line.partition(" ") for line in done.stdout.splitlines())
    return {kind: shown for kind, _, shown in lines}


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("secret", "key [redacted:string:17-32] end"),
        ("embedder", "(1, 8)"),
        ("proposer", "[{'number': 14}]"),
        ("hook", "200"),
    ],
)
def test_an_installed_plug_in_is_used(used: dict[str, str], kind: str, shown: str) -> None:
    """Without a line of configuration."""
    assert used[kind] == shown


@pytest.mark.real
def test_a_log_of_an_added_form_is_read(used: dict[str, str]) -> None:
    """Two calls, one of which failed."""
    assert used["log"].startswith("2 valid, 0 duplicates, 0 rejected")
    assert "1 of 2 calls failed" in used["log"]


def _install(folder: Path, group: str, value: str) -> None:
    info = folder / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[aftercall.{group}]\nbad = {value}\n")


@pytest.mark.parametrize("value", ["no_such_module:X", "json:JSONDecoder", "sys:path"])
def test_a_broken_plug_in_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    """It is named with its fault; what it would have added is missing, and nothing else."""
    load_plugins.cache_clear()
    load_tables.cache_clear()
    _install(tmp_path, "log_forms", value)
    monkeypatch.syspath_prepend(tmp_path)
    with caplog.at_level(logging.WARNING, "aftercall.extensions"):
        assert load_tables("log_forms") == {}
    assert "'bad' of aftercall.log_forms is left out" in caplog.text


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ("secret_forms", "title = 5"),
        ("secret_forms", '[[form]]\nname = "x"\nhints = ["x"]\npattern = "(("'),
        ("log_forms", "title = 5"),
        ("log_forms", '[x]\ntitle = "x"\nrules = [{ when = 5 }]'),
        ("hook_clients", "title = 5"),
    ],
)
def test_a_table_of_another_form_is_left_out(tmp_path: Path, group: str, text: str) -> None:
    """Commands, hooks and imports go on, in a process that has it installed."""
    package = tmp_path / "odd_plugin"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from importlib.resources import files\nFILE = files('odd_plugin') / 'table.toml'\n"
    )
    (package / "table.toml").write_text(text)
    _install(tmp_path, group, "odd_plugin:FILE")
    done = subprocess.run(
        [
            sys.executable, "-c",
            "import aftercall.secret_forms; from ingest.formats.rules import read_forms; "
            "from service.hooks.clients import client_names, read_client; read_forms(); "
            "[read_client(name) for name in client_names()]",
        ],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"the plug-in 'bad' of aftercall.{group} is left out" in done.stderr


def test_a_proposer_that_fails_costs_its_own_options(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is no proposer is left out; one that raises is named, and has no options."""

    def failing(*_: object) -> list[Option]:
        raise ZeroDivisionError

    wrong = Proposer("odd.failing", frozenset({"missing"}), failing)
    added = {"odd": wrong, "none": object()}
    monkeypatch.setattr(registry, "load_plugins", lambda _: added)
    registry.register_plugins()
    try:
        guarded = registry._proposers["odd.failing"]
        with caplog.at_level(logging.ERROR):
            assert guarded.options(*[None] * 3) == []  # type: ignore[list-item]
        assert "'odd.failing' of a plug-in failed" in caplog.text
        assert "'none' of aftercall.proposers is left out" in caplog.text
    finally:
        registry.unregister_proposer("odd.failing")
