"""`aftercall hook CLIENT`: light, silent, over in time, and never in the way of a call."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall.cli.hook import TRANSCRIPT, TRANSCRIPT_EVENTS
from service.hooks.clients import client_names, read_client
from service.hooks.events import TRANSCRIPT as READ_FROM
from tests.hooks.payloads import SHAPES
from tests.hooks.real_clients import AFTERCALL
from tests.service.running_service import RunningService

Json = dict[str, Any]
HEAVY = ("pydantic", "httpx2", "argparse", "pathlib", "importlib.metadata", "asyncio", "ssl")


def hook(
    home: Path, *words: str, payload: object = None, text: str | None = None, **more: str
) -> tuple[int, str, str]:
    """Run the command as a client does: exit code, what it printed, what it complained of."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), **more}
    given = json.dumps(payload) if text is None else text
    ended = subprocess.run(
        [AFTERCALL, "hook", *words], input=given, env=environ, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    return ended.returncode, ended.stdout, ended.stderr


def test_the_answer_is_printed_and_nothing_else(service: RunningService, tmp_path: Path) -> None:
    wrong = SHAPES["cline"].before("s", "read_files", {"path": "/repo/a.py"})
    code, printed, said = hook(tmp_path, "cline", "--service", service.url, payload=wrong)
    assert (code, said) == (0, "")
    assert json.loads(printed)["overrideInput"] == {"files": [{"path": "/repo/a.py"}]}
    right = SHAPES["cline"].before("s", "read_files", {"files": [{"path": "/repo/a.py"}]})
    assert hook(tmp_path, "cline", "--service", service.url, payload=right) == (0, "", "")


def test_options_go_to_the_service(service: RunningService, tmp_path: Path) -> None:
    wrong = SHAPES["cline"].before("s", "desk__lookup_ticket", {"ticket_id": "7"})
    at = ("--service", service.url)
    _, printed, _ = hook(tmp_path, "cline", *at, "--mode", "advise", payload=wrong)
    assert "overrideInput" not in json.loads(printed)
    assert hook(tmp_path, "cline", *at, "--except", "desk", payload=wrong) == (0, "", "")


def test_the_service_is_found_as_the_gateway_finds_it(
    service: RunningService, tmp_path: Path
) -> None:
    wrong = SHAPES["cline"].before("s", "read_files", {"path": "/repo/a.py"})
    _, printed, _ = hook(tmp_path, "cline", payload=wrong, AFTERCALL_URL=service.url)
    assert "overrideInput" in printed


def test_a_service_that_is_away_is_said_once(service: RunningService, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{closed.getsockname()[1]}"
    payload = SHAPES["codex"].before("s", "Bash", {"command": "ls"})
    code, printed, said = hook(tmp_path, "codex", "--service", away, payload=payload)
    assert (code, printed) == (0, "")
    assert said.count("\n") == 1
    assert away in said
    assert hook(tmp_path, "codex", "--service", away, payload=payload) == (0, "", "")
    assert hook(tmp_path, "codex", "--service", service.url, payload=payload) == (0, "", "")
    assert away in hook(tmp_path, "codex", "--service", away, payload=payload)[2]


def test_a_service_that_hangs_ends_the_hook_in_time(tmp_path: Path) -> None:
    payload = SHAPES["codex"].before("s", "Bash", {"command": "ls"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        code, printed, _ = hook(tmp_path, "codex", "--service", url, payload=payload)
        assert (code, printed) == (0, "")
        assert time.monotonic() - begun < 30  # 3 s, and what a busy machine adds


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"hook_event_name": "PreToolUse"', "\x00"])
@pytest.mark.parametrize("client", ["codex", "gemini", "notepad", "../keys"])
def test_whatever_comes_the_hook_ends_with_0_and_prints_nothing(
    client: str, text: str, service: RunningService, tmp_path: Path
) -> None:
    code, printed, _ = hook(tmp_path, client, "--service", service.url, text=text)
    assert (code, printed) == (0, "")


@pytest.mark.parametrize(
    "words", [("--loud",), ("--service",), ("--service", "ftp://x"), ("--service", "nowhere")]
)
def test_a_wrong_command_line_is_said_and_stands_in_no_way(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    code, printed, said = hook(tmp_path, "codex", *words, payload={"hook_event_name": "Stop"})
    assert (code, printed) == (0, "")
    assert said.startswith("aftercall: ")


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from aftercall.cli import main; main(['hook', 'codex']); "
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *HEAVY], input="{}", capture_output=True, text=True,
        check=True, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert ended.stdout == "[]\n"


def test_the_end_of_the_transcript_goes_along_where_the_client_has_one(
    service: RunningService, tmp_path: Path
) -> None:
    patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-bta\n+x\n*** End Patch\n"
    said = "apply_patch verification failed: Failed to find expected lines in notes.txt:\nbta"
    called = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": patch}
    ended = {"type": "custom_tool_call_output", "call_id": "c1", "output": said}
    lines = [json.dumps({"type": "response_item", "payload": each}) for each in (called, ended)]
    transcript = tmp_path / "rollout.jsonl"
    transcript.write_text("\n".join(["x" * 200_000, *lines, ""]))
    payload = SHAPES["codex"].before(
        str(uuid4()), "Bash", {"command": "ls"}, transcript_path=str(transcript)
    )
    _, printed, _ = hook(tmp_path, "codex", "--service", service.url, payload=payload)
    assert "notes.txt" in json.loads(printed)["hookSpecificOutput"]["additionalContext"]
    secret = tmp_path / "secret.txt"
    secret.write_text(transcript.read_text())
    other = payload | {"session_id": str(uuid4()), "transcript_path": str(secret)}
    assert hook(tmp_path, "codex", "--service", service.url, payload=other) == (0, "", "")


def test_command_and_service_agree_on_the_transcripts() -> None:
    assert TRANSCRIPT == READ_FROM
    with_rules = {name for name in client_names() if read_client(name).transcript}
    assert with_rules == TRANSCRIPT_EVENTS.keys()
    for name, events in TRANSCRIPT_EVENTS.items():
        assert set(events) <= {each.name for each in read_client(name).events}


def test_a_client_without_hooks_is_answered_by_those_that_have_some(
    service: RunningService, tmp_path: Path
) -> None:
    """In one plain line at each call, also after a service was away; a wrong option likewise."""
    away = ("nope", "--service", "http://127.0.0.1:9")
    hook(tmp_path, *away, payload={"hook_event_name": "PreToolUse"})
    for _ in range(2):
        asked = ("nope", "--service", service.url)
        code, printed, said = hook(tmp_path, *asked, payload={"hook_event_name": "PreToolUse"})
        assert (code, printed) == (0, "")
        assert said.startswith("aftercall: `aftercall hook nope`: there are no hooks of that name")
        assert all(name in said for name in client_names())
        assert "{" not in said
    said = hook(tmp_path, "codex", "--nope", "x", payload={})[2]
    assert said.startswith(
        "aftercall: --nope is no option of `aftercall hook`; there are --service"
    )
