"""`aftercall promotions` against a true service."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from aftercall import Client, ToolSpec
from aftercall.promotions_file import parse_promotions, render_promotions
from tests.service.running_service import Run, RunningService

COMMAND = "promotions"


@pytest.fixture
def name(service: RunningService) -> str:
    """A tool that is registered; nothing is promoted before a test."""
    made = f"tool_{uuid4().hex[:6]}"
    with Client(service.url) as client:
        client.put_tool(made, ToolSpec(name=made, version="1.0.0"))
        client.import_promotions({})
    return made


def a_file(folder: Path, name: str, version: str = "1.1.0", reason: str = "slow") -> Path:
    """A promotions file of one entry, with its evolved file."""
    evolved = f"{name}_v{version.replace('.', '_')}.py"
    (folder / evolved).write_text("")
    path = folder / ".tool_promotions.json"
    entry = {
        "evolved_version": version, "evolved_file": evolved, "original_version": "1.0.0",
        "reason": reason, "mutation": "", "promoted_at": "2024-01-15T10:30:45Z",
    }  # fmt: skip
    path.write_text(render_promotions(parse_promotions(json.dumps({name: entry}))))
    return path


def test_a_file_goes_in_and_comes_out(run: Run, name: str, tmp_path: Path) -> None:
    """Byte for byte."""
    assert run("list") == (0, "nothing is promoted\n", "")
    path = a_file(tmp_path, name)
    code, said, _ = run("import", str(path))
    assert (code, said.splitlines()[0]) == (0, f"added: 1 ({name})")
    assert run("export")[1] == path.read_text()
    code, said, _ = run("export", str(tmp_path / "out.json"))
    assert (code, said) == (0, f"1 promotion written to {tmp_path / 'out.json'}\n")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()
    assert "unchanged: 1\n" in run("import", str(path))[1]
    assert f"{name}  1.0.0 -> 1.1.0" in run("list")[1]


def test_a_masked_reason_is_no_change(run: Run, name: str, tmp_path: Path) -> None:
    """The service never sees the secret, so the file and the service agree."""
    path = a_file(tmp_path, name, reason="with token=sk-live-abcdefghijklmnop1234")
    run("import", str(path))
    assert "abcdefghijklmnop" not in run("export")[1]
    assert "changed: 0\n" in run("import", str(path))[1]


def test_a_way_back(run: Run, name: str, tmp_path: Path) -> None:
    """History, rollback and removal, in words."""
    for version in ("1.1.0", "1.2.0"):
        run("import", str(a_file(tmp_path, name, version)))
    code, said, _ = run("rollback", name)
    assert (code, said) == (0, f"{name}: 1.1.0 stands in for 1.0.0 ({name}_v1_1_0.py)\n")
    assert run("remove", name) == (0, f"{name}: the original serves\n", "")
    lines = run("history", name)[1].splitlines()
    assert [line.split()[2] for line in lines] == ["removed", "rolled", "imported", "imported"]
    assert lines[0].endswith("the original serves")


def test_a_missing_evolved_file_is_refused(run: Run, name: str, tmp_path: Path) -> None:
    """Before the service is asked; `--root` says where it is, `--no-file-check` does not look."""
    path = a_file(tmp_path, name)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    evolved = tmp_path / f"{name}_v1_1_0.py"
    evolved.rename(elsewhere / evolved.name)
    code, said, told = run("import", str(path))
    assert (code, said) == (1, "")
    assert "nothing was imported" in told
    assert "--no-file-check" in told
    assert evolved.name in told
    assert run("list")[1] == "nothing is promoted\n"
    assert run("import", str(path), "--root", str(elsewhere))[0] == 0
    assert run("import", str(path), "--no-file-check")[0] == 0


def test_faults_are_told_in_one_line_each(run: Run, name: str, tmp_path: Path) -> None:
    """A malformed file with its line, names that nobody has, a service that is not there."""
    path = a_file(tmp_path, name)
    path.write_text(path.read_text().replace('"1.1.0"', '"new"'))
    code, _, told = run("import", str(path))
    assert code == 1
    assert f"entry '{name}': evolved_version: 'new' is no version" in told
    assert run("import", str(tmp_path / "gone.json"))[2].count("cannot be read: No such file") == 1
    for action in ("history", "rollback", "remove"):
        code, said, told = run(action, "no_such_namespace_at_all")
        assert (code, said, "aftercall promotions list" in told) == (1, "", True), action
        assert run(action, "")[0] == 2
    assert "there is nothing to go back to" in run("rollback", name)[2]
    code, _, told = run("list", url="http://127.0.0.1:1")
    assert (code, "no service at" in told) == (1, True)
    assert run("nonsense")[0] == 2
