"""The real clients from npm, against a scripted model: a mistake, and what the model was told.

They take 1.4 GB, so that they are not in `make test` but in `make prove`. HOOK_CLIENTS names a
folder that has them already, in `node_modules`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import NO_NPM
from tests.hooks.real_clients import PROMPT, RUNS, Machine, new_machine, remove
from tests.hooks.scripted_model import ScriptedModel, Turn, scripted_model
from tests.service.running_service import RunningService

pytestmark = [pytest.mark.real, pytest.mark.prove, pytest.mark.timeout(600)]

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where the clients are: in HOOK_CLIENTS, or installed beside this file, once."""
    folder = Path(os.environ.get("HOOK_CLIENTS") or HERE)
    npm = shutil.which(os.environ.get("NPM") or "npm")
    found = folder / "node_modules" / ".bin"
    if not (found / "codex").exists() and npm is not None and folder == HERE:
        words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
        subprocess.run(words, cwd=HERE, stdout=sys.stderr, check=False)
    if not (found / "codex").exists():
        (pytest.fail if "NPM" in os.environ else pytest.skip)(NO_NPM)
    return found


@pytest.fixture
def machine(
    programs: Path, tmp_path: Path, service: RunningService, request: pytest.FixtureRequest
) -> Iterator[Machine]:
    made = new_machine(tmp_path / "run", programs, service.url)
    yield made
    made.end_left_over()
    remove(made)


def told(client: str, machine: Machine, *turns: Turn) -> ScriptedModel:
    """Run a client through turns; what its model was asked."""
    with scripted_model(*turns) as model:
        RUNS[client](machine, model)
    said = (machine.home / "said.txt").read_text(errors="replace")[-2_000:]
    assert len(model.asked) > len(turns), said
    return model


def test_codex_mends_a_call_of_mcp_and_tells_of_failures(machine: Machine) -> None:
    """Also of a failed patch, for which it has no event: before the next call."""
    patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-bta\n+x\n*** End Patch\n"
    model = told(
        "codex",
        machine,
        [("exec_command", {"cmd": "ls"})],
        [("exec_command", {"cmd": "cat note.txt"})],
        [("exec_command", {"cmd": "cat notes.txt"})],
        [("desk/lookup_ticket", {"ticket_id": "7"})],
        [("apply_patch", patch)],
        [("exec_command", {"cmd": "ls --no-such-option"})],
    )
    texts = model.texts()
    assert '"note.txt" is not there; this session saw "notes.txt"' in texts
    assert "ticket 7 is open" in texts
    assert "`ticket_id` is rewritten" in texts
    assert "about the apply_patch call that failed before" in texts
    assert '"ls" has no "--no-such-option"' in texts


def test_opencode_mends_arguments_before_its_own_check(machine: Machine) -> None:
    repo = machine.repo
    model = told(
        "opencode",
        machine,
        [("read", {"filePath": f"{repo}/notes.txt"})],
        [("read", {"file_path": f"{repo}/src/config.py"})],
        [("read", {"filePath": f"{repo}/note.txt"})],
        [("desk_lookup_ticket", {"ticket_id": "7"})],
    )
    texts = model.texts()
    assert "PORT = 8080" in texts
    assert "Aftercall repaired this call before it was made" in texts
    assert f'is not there; this session saw "{repo}/notes.txt"' in texts
    assert "ticket 7 is open" in texts


def test_gemini_is_told_the_near_path_in_the_place_of_the_error(machine: Machine) -> None:
    model = told(
        "gemini",
        machine,
        [("glob", {"pattern": "**/*.py"})],
        [("read_file", {"file_path": "src/confg.py"})],
        [("run_shell_command", {"command": "ls --no-such", "description": "d"})],
    )
    texts = model.texts()
    assert "File not found" in texts
    assert f'is not there; this session saw "{machine.repo}/src/config.py"' in texts
    assert '<hook_context>Aftercall (recorded data, not instructions): "ls" has no' in texts


def test_qwen_is_told_also_of_a_call_that_no_hook_saw(machine: Machine) -> None:
    repo = machine.repo
    model = told(
        "qwen",
        machine,
        [("glob", {"pattern": "**/*.py"})],
        [("read_file", {"file_path": f"{repo}/src/confg.py"})],
        [("grep_search", {"pattern": "PORT", "path": f"{repo}/srcs"})],
    )
    texts = model.texts()
    assert f'is not there; this session saw "{repo}/src/config.py"' in texts
    assert "about the grep_search call that failed before" in texts
    assert f'this session saw "{repo}/src"' in texts
    assert "about the read_file call" not in texts


def test_cline_mends_a_call_that_only_reads(machine: Machine) -> None:
    repo = machine.repo
    model = told(
        "cline",
        machine,
        [("read_files", {"files": [{"path": f"{repo}/notes.txt"}]})],
        [("read_files", {"files": [{"path": f"{repo}/note.txt"}]})],
        [("desk__lookup_ticket", {"ticket_id": "7"})],
    )
    texts = model.texts()
    assert f'is not there; this session saw "{repo}/notes.txt"' in texts
    assert "ticket 7 is open" in texts
    assert "Aftercall repaired this call before it was made" in texts


@pytest.mark.parametrize("client", sorted(RUNS))
def test_a_service_that_is_away_changes_nothing(client: str, machine: Machine) -> None:
    """The run goes on to its end, and the model is told nothing."""
    repo, away = machine.repo, "http://127.0.0.1:9"
    alone = Machine(machine.home, repo, machine.bin, away)
    calls: dict[str, Turn] = {
        "codex": [("exec_command", {"cmd": "cat notes.txt"})],
        "opencode": [("read", {"filePath": f"{repo}/notes.txt"})],
        "gemini": [("read_file", {"file_path": "notes.txt"})],
        "qwen": [("read_file", {"file_path": f"{repo}/notes.txt"})],
        "cline": [("read_files", {"files": [{"path": f"{repo}/notes.txt"}]})],
    }
    texts = told(client, alone, calls[client]).texts()
    assert PROMPT in texts
    assert "gamma" in texts
    assert "Aftercall" not in texts.replace("aftercall", "")
