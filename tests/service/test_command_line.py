"""Commands of the service: what they refuse, in which words, and how much they import."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from aftercall.cli import main
from mongo.sqlite.store import open_sqlite_store

NEEDLESS = ("fastapi", "numpy", "onnxruntime", "qdrant_edge", "retrieval", "uvicorn")


def finished(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and the last line on stderr of a command line."""
    try:
        code = main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, capsys.readouterr().err.strip().rpartition("\n")[2]


async def make_store(folder: Path) -> None:
    """Leave an empty log store in a folder."""
    await (await open_sqlite_store(folder)).close()


@pytest.mark.parametrize("command", [("keys", "export"), ("export",)])
def test_a_file_that_is_there_is_replaced_by_force_alone(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What somebody kept under that name stays as it is."""
    place = ("--data-dir", str(tmp_path / "data"))
    assert finished("keys", "create", "ada", *place, capsys=capsys)[0] == 0
    asyncio.run(make_store(tmp_path / "data"))
    file = tmp_path / "kept.jsonl.gz"
    file.write_text("kept")
    code, said = finished(*command, str(file), *place, capsys=capsys)
    assert (code, file.read_text()) == (1, "kept")
    assert said == (
        f"aftercall: {file} is there already: name another file, or add --force to replace it"
    )
    assert finished(*command, str(file), "--force", *place, capsys=capsys)[0] == 0
    assert file.read_bytes() != b"kept"
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("keys create|", 2, "argument NAME: the name is empty"),
        ("keys create|x|--rate|-1", 2, "--rate: '-1' is not a number above 0, at most 1,000,000"),
        ("keys create|x|--days|9e9", 2, "--days: '9e9' is not a number above 0, at most 36,500"),
        ("keys create|x|--days|nan", 2, "--days: 'nan' is not a number above 0, at most 36,500"),
        ("keys create|x|--workspace|a b", 1, "workspace: should begin with a letter or digit"),
        ("keys rotate|x|--overlap-s|-3", 2, "--overlap-s: '-3' is not a whole number from 0 to"),
        ("audit|--limit|0", 2, "--limit: '0' is not a whole number from 1 to 1,000"),
        ("serve|--port|70000", 1, "--port: should be less than or equal to 65535"),
        ("serve|--linger|-1", 2, "--linger: '-1' is not a number from 0 to"),
        ("export|x|--flat|--tool|", 2, "--tool: the name is empty"),
        ("forget|--agent|", 2, "--agent: the name is empty"),
        ("recommendations dismiss|x|--reason|" + "a" * 2_001, 2, "2,000 characters at most"),
    ],
)
def test_a_wrong_option_is_named_with_what_it_takes(
    words: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a plain sentence, without the words of a library, and before anything is opened."""
    monkeypatch.setenv("AFTERCALL_DATA_DIR", str(tmp_path))
    command, *options = words.split("|")
    ended, line = finished(*command.split(), *options, capsys=capsys)
    assert ended == code
    assert said in line
    assert "String" not in line


def test_a_wrong_setting_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that gave the value is named instead."""
    monkeypatch.setenv("AFTERCALL_SERVER_PORT", "70000")
    code, line = finished("settings", capsys=capsys)
    assert (code, line) == (
        1,
        "aftercall: AFTERCALL_SERVER_PORT: should be less than or equal to 65535",
    )


def test_keys_import_neither_fastapi_nor_vectors(tmp_path: Path) -> None:
    """`aftercall keys` and `aftercall audit` open a small store: a third of a second, not 1.4."""
    script = (
        "import json, sys; from aftercall.cli import main; "
        "code = main(sys.argv[1:]); print(json.dumps([code, sorted(sys.modules)]))"
    )
    for words in (["keys", "create", "ada"], ["keys", "list"], ["audit"]):
        ended = subprocess.run(
            [sys.executable, "-c", script, *words, "--data-dir", str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
        )
        code, modules = json.loads(ended.stdout.splitlines()[-1])
        assert code == 0
        assert not {each.partition(".")[0] for each in modules} & {*NEEDLESS}
