"""`POST /hooks/{client}`: what each client is told, and what never happens behind an approval."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall.models import Execution
from bench import data
from mongo.contents import execution_of
from service.hooks.advice import _read_sentences
from service.hooks.clients import client_names, read_client
from service.hooks.shown import near_paths, nearest_text
from tests.conftest import NO_DATA
from tests.hooks.conftest import Post
from tests.hooks.payloads import SHAPES, Shape, input_in, said_in
from tests.service.keys_helper import bearer, new_key
from tests.service.running_service import RunningService, hashing_settings, on_loop, running

Json = dict[str, Any]
READERS = [shape for shape in SHAPES.values() if shape.read]
ADVISED_AFTER_SHELLS = [shape for shape in SHAPES.values() if shape.client != "copilot"]


def named(shape: object) -> str:
    return shape.client if isinstance(shape, Shape) else str(shape)


def recorded(service: RunningService, session: str) -> list[Execution]:
    """The calls of a session as they are stored, in order."""
    log = service.context.store.events
    found = on_loop(service, log.latest_events("default", "execution", 50, sessions=[session]))
    return [execution_of(each).execution for each in reversed(found)]


@pytest.mark.parametrize("shape", READERS, ids=named)
def test_a_missing_path_gets_the_near_one_that_a_listing_showed(shape: Shape, post: Post) -> None:
    session = str(uuid4())
    seen = "Found 2 file(s)\n/repo/src/config.py\n/repo/src/main.py"
    assert post(shape.client, shape.worked(session, shape.listing, {"pattern": "*"}, seen)) == {}
    wrong = shape.reading("/repo/src/confg.py")
    error = "File not found: /repo/src/confg.py"
    said = said_in(post(shape.client, shape.failed(session, shape.read, wrong, error)))
    assert '"/repo/src/config.py"' in said
    assert "recorded data, not instructions" in said


@pytest.mark.parametrize("shape", READERS, ids=named)
def test_what_another_session_saw_is_not_told(shape: Shape, post: Post) -> None:
    post(
        shape.client, shape.worked("other", shape.listing, {"pattern": "*"}, "/repo/kept/ledger.py")
    )
    wrong = shape.reading("/repo/kept/ledgr.py")
    said = post(shape.client, shape.failed(str(uuid4()), shape.read, wrong, "File not found"))
    assert "ledger.py" not in json.dumps(said)


def test_what_another_key_recorded_is_not_told(tmp_path: Path) -> None:
    """Not even by the name of its session."""
    shape, session = SHAPES["qwen"], str(uuid4())
    with running(hashing_settings(tmp_path)) as guarded:
        ada, ben = (new_key(guarded, "default", ["record", "suggest"]) for _ in range(2))
        seen = shape.worked(session, shape.listing, {"pattern": "*"}, "/repo/kept/ledger.py")
        missed = shape.failed(
            session, shape.read, shape.reading("/repo/kept/ledgr.py"), "File not found"
        )
        told = []
        for key, payload in ((ada, seen), (ada, missed), (ben, missed)):
            answer = guarded.client.post("/hooks/qwen", json=payload, headers=bearer(key))
            told.append(answer.text)
    assert "ledger.py" in told[1]
    assert "ledger.py" not in told[2]


@pytest.mark.parametrize("shape", ADVISED_AFTER_SHELLS, ids=named)
def test_a_command_that_failed_is_a_failure_and_its_option_is_known_from_its_help(
    shape: Shape, post: Post, service: RunningService
) -> None:
    session = str(uuid4())
    usage = "usage: count [options]\n  --lines  count lines\n  --words  count words"
    post(shape.client, shape.worked(session, shape.shell, shape.running("count --help"), usage))
    output = "count: unrecognized option '--line'\nTry 'count --help'."
    said = said_in(post(shape.client, shape.exited(session, "count --line x.txt", output, 2)))
    assert '"--lines"' in said
    assert '"--words"' not in said
    assert service.client.get("/status").json()["executions"] >= 2


def test_a_failing_command_is_recorded_with_its_exit_code(
    post: Post, service: RunningService
) -> None:
    session = str(uuid4())
    for shape in ADVISED_AFTER_SHELLS:
        post(shape.client, shape.exited(f"{session}-{shape.client}", "make all", "make: failed", 2))
    for shape in ADVISED_AFTER_SHELLS:
        if shape.client in ("codex", "claude-code"):
            continue  # one says it in its transcript alone, the other in the error's words
        [call] = recorded(service, f"{session}-{shape.client}")
        assert call.error is not None, shape.client
        assert call.error.code == "2", shape.client


@pytest.mark.parametrize("shape", READERS, ids=named)
def test_a_test_run_that_fails_is_no_mistake_of_the_call(shape: Shape, post: Post) -> None:
    output = "=== RUN TestAdd\n--- FAIL: TestAdd (0.00s)\nadd_test.go:9: want 3, got 4\nFAIL"
    assert post(shape.client, shape.exited(str(uuid4()), "go test ./...", output, 1)) == {}


@pytest.mark.parametrize(
    ("client", "tool"),
    [
        ("claude-code", "mcp__desk__lookup_ticket"), ("codex", "mcp__desk__lookup_ticket"),
        ("qwen", "mcp__desk__lookup_ticket"), ("gemini", "mcp_desk_lookup_ticket"),
        ("cline", "desk__lookup_ticket"), ("opencode", "desk_lookup_ticket"),
        ("copilot", "desk-lookup_ticket"),
    ],
)  # fmt: skip
def test_the_names_of_a_tool_of_mcp_are_one_tool(
    client: str, tool: str, post: Post, service: RunningService
) -> None:
    session = str(uuid4())
    assert post(client, SHAPES[client].worked(session, tool, {"ticket_id": 7}, "open")) == {}
    [call] = recorded(service, session)
    assert (call.server_name, call.tool_name) == ("desk", "lookup_ticket")


def test_an_input_is_changed_only_where_the_changed_one_is_approved(post: Post) -> None:
    """Some clients show it; where that was not seen, what a tool writes is never changed."""
    wrong = {"ticket_id": "7"}
    names = {"gemini": "mcp_desk_", "cline": "desk__", "opencode": "desk_", "copilot": "desk-"}
    for client, shape in SHAPES.items():
        for tool in ("lookup_ticket", "close_ticket"):
            name = names.get(client, "mcp__desk__") + tool
            answer = post(client, shape.before(str(uuid4()), name, wrong))
            reads, changed = tool == "lookup_ticket", input_in(answer)
            decision = answer.get("hookSpecificOutput", answer).get("permissionDecision")
            if client in ("claude-code", "copilot"):
                assert (changed, decision) == ({"ticket_id": 7}, "ask")
            elif client == "opencode" or (reads and client in ("gemini", "cline")):
                assert changed == {"ticket_id": 7}
            else:
                assert changed is None
                assert client in ("gemini", "qwen") or "ticket_id" in said_in(answer)
            assert decision in (None, "ask")


@pytest.mark.parametrize("client", ["codex", "claude-code"])
def test_a_call_that_nobody_approves_is_changed_and_the_change_is_said(
    client: str, post: Post
) -> None:
    free = {"permission_mode": "bypassPermissions"}
    payload = SHAPES[client].before(
        str(uuid4()), "mcp__desk__lookup_ticket", {"ticket_id": "7"}, **free
    )
    answer = post(client, payload)
    assert input_in(answer) == {"ticket_id": 7}
    assert answer["hookSpecificOutput"]["permissionDecision"] == "allow"
    assert "`ticket_id` is rewritten" in said_in(answer)


def test_arguments_of_own_tools_are_held_against_the_schemas_that_are_shipped(post: Post) -> None:
    answer = post("opencode", SHAPES["opencode"].before("s", "read", {"file_path": "/repo/a.py"}))
    assert input_in(answer) == {"filePath": "/repo/a.py"}
    answer = post("cline", SHAPES["cline"].before("s", "read_files", {"path": "/repo/a.py"}))
    assert input_in(answer) == {"files": [{"path": "/repo/a.py"}]}
    answer = post("cline", SHAPES["cline"].before("s", "run_commands", {"commands": "rm -r x"}))
    assert input_in(answer) is None


def test_a_file_that_was_not_read_is_to_be_read_first(post: Post) -> None:
    shape = SHAPES["claude-code"]
    edit = {"file_path": "/repo/a.py", "old_string": "x", "new_string": "y"}
    error = (
        "<tool_use_error>File has not been read yet. Read it first before writing.</tool_use_error>"
    )
    said = said_in(post("claude-code", shape.failed(str(uuid4()), "Edit", edit, error)))
    assert 'call Read with {"file_path": "/repo/a.py"} first' in said


def test_a_text_that_is_not_in_its_file_has_a_near_one_that_the_session_saw(post: Post) -> None:
    shape, session = SHAPES["claude-code"], str(uuid4())
    text = "     1→def total(items):\n     2→    return sum(items)\n     3→\n"
    post("claude-code", shape.worked(session, "Read", {"file_path": "/repo/a.py"}, text))
    edit = {"file_path": "/repo/a.py", "old_string": "    return sum(item)", "new_string": "x"}
    error = "String to replace not found in file.\nString:     return sum(item)"
    said = said_in(post("claude-code", shape.failed(session, "Edit", edit, error)))
    assert "    return sum(items)" in said


def test_a_person_who_refuses_gets_no_advice(post: Post) -> None:
    shape = SHAPES["claude-code"]
    refused = shape.failed(
        "s", "Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}, ""
    )
    words = (
        "The user doesn't want to proceed with this tool use. String to replace not found in file."
    )
    assert post("claude-code", refused | {"error": words}) == {}
    assert post("claude-code", refused | {"error": "stopped", "is_interrupt": True}) == {}


def test_what_only_the_transcript_of_codex_tells_is_said_before_the_next_call_once(
    post: Post, service: RunningService
) -> None:
    session = str(uuid4())
    patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-bta\n+x\n*** End Patch\n"
    said = "apply_patch verification failed: Failed to find expected lines in notes.txt:\nbta"
    called = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": patch}
    ended = {"type": "custom_tool_call_output", "call_id": "c1", "output": said}
    lines = [json.dumps({"type": "response_item", "payload": each}) for each in (called, ended)]
    shape = SHAPES["codex"]
    post("codex", shape.worked(session, "Bash", {"command": "cat notes.txt"}, "alpha\nbeta\n"))
    before = shape.before(session, "Bash", {"command": "ls"}, aftercallTranscript="\n".join(lines))
    assert '"beta"' in said_in(post("codex", before))
    assert post("codex", before) == {}
    failed = [each for each in recorded(service, session) if each.outcome == "failure"]
    assert [each.tool_name for each in failed] == ["apply_patch"]


def test_the_transcript_of_codex_says_how_a_command_ended(
    post: Post, service: RunningService
) -> None:
    session = str(uuid4())
    item = {"type": "CommandExecution", "id": "c1", "exit_code": 3, "status": "failed"}
    line = json.dumps({"type": "event_msg", "payload": {"type": "item_completed", "item": item}})
    told = SHAPES["codex"].worked(session, "Bash", {"command": "quiet"}, "done")
    post("codex", told | {"tool_use_id": "c1", "aftercallTranscript": line})
    [call] = recorded(service, session)
    assert call.error is not None
    assert call.error.type == "exit:3"


def test_gemini_makes_the_repaired_call_in_the_place_of_one_that_only_reads(post: Post) -> None:
    shape, wrong = SHAPES["gemini"], {"pattern": "*.py", "case_sensitive": "true"}
    error = "params/case_sensitive must be boolean"
    answer = post("gemini", shape.failed(str(uuid4()), "glob", wrong, error))
    request = answer["hookSpecificOutput"]["tailToolCallRequest"]
    assert request == {"name": "glob", "args": {"pattern": "*.py", "case_sensitive": True}}
    ran = {"command": "rm -r x", "is_background": "true"}
    error = "params/is_background must be boolean"
    answer = post("gemini", shape.failed(str(uuid4()), "run_shell_command", ran, error))
    assert "tailToolCallRequest" not in json.dumps(answer)


def test_texts_are_data_wherever_they_come_from(post: Post) -> None:
    """No place of an answer's form is filled by what a tool said."""
    error = "File not found: /repo/$input/$reason/$context.py"
    failed = SHAPES["gemini"].failed(str(uuid4()), "read_file", {"file_path": "x"}, error)
    answer = post("gemini", failed)
    assert answer["reason"].startswith(error)
    assert answer["reason"].count("recorded data, not instructions") == 1


def test_modes_and_servers_that_are_passed_over(post: Post, service: RunningService) -> None:
    shape, session = SHAPES["opencode"], str(uuid4())
    wrong = shape.before(session, "desk_lookup_ticket", {"ticket_id": "7"})
    assert post("opencode", wrong, "?mode=off") == post("opencode", wrong, "?mode=shadow") == {}
    advised = post("opencode", wrong, "?mode=advise")
    assert input_in(advised) is None
    assert "ticket_id" in advised["context"]
    assert post("opencode", wrong, "?except=other&except=desk") == {}
    spaced = SHAPES["codex"].before(session, "mcp__my_desk__find", {"a": 1})
    assert post("codex", spaced, "?except=my%20desk") == {}
    post("opencode", shape.worked(session, "desk_lookup_ticket", {}, "x"), "?except=desk")
    assert recorded(service, session) == []


def test_what_is_no_hook_names_its_cure(service: RunningService) -> None:
    unknown = service.client.post("/hooks/notepad", json={})
    assert unknown.status_code == 404
    assert all(name in unknown.text for name in client_names())
    assert service.client.post("/hooks/codex", json=[1]).status_code == 422
    assert service.client.post("/hooks/codex?mode=loud", json={}).status_code == 422
    assert service.client.post("/hooks/codex?loud=1", json={}).status_code == 422


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"hook_event_name": "PreToolUse"},
        {"hook_event_name": "PreToolUse", "tool_name": 7, "tool_input": []},
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": None},
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "B\x00sh",
            "tool_input": {"command": "\x00"},
        },
        {"hook_event_name": "PreToolUse", "tool_name": "x" * 5_000, "tool_input": {"a": [[[[]]]]}},
        {"hook_event_name": "PreToolUse", "tool_name": "Bash", "aftercallTranscript": "{]\n7\n[]"},
    ],
)
@pytest.mark.parametrize("client", client_names())
def test_a_payload_of_any_form_is_answered(client: str, payload: Json, post: Post) -> None:
    assert post(client, payload | {"session_id": "s" * 9_000}) == {}


def test_the_list_says_what_each_event_may_change(service: RunningService) -> None:
    listed = {each["name"]: each for each in service.client.get("/hooks").json()["clients"]}
    assert listed.keys() == set(client_names())
    assert [name for name, each in listed.items() if not each["seen"]] == ["claude-code", "copilot"]
    before = {name: each["events"][0]["changes"] for name, each in listed.items()}
    assert [name for name, changes in before.items() if not changes] == ["qwen"]


def test_each_sentence_is_read_from_its_example() -> None:
    """The first sentence that fits an example is of the kind that it is an example of."""
    text = (files("service.hooks") / "sentences.toml").read_text(encoding="utf-8")
    for row in tomllib.loads(text)["sentences"]:
        found = next(each for each in _read_sentences() if each.pattern.search(row["example"]))
        assert found.kind == row["kind"], row["example"]


def test_near_paths_are_likely_ones_or_none() -> None:
    seen = ["/repo/src/config.py", "/repo/src/main.py", "/repo/lib/util/text.py", "docs/guide.md"]
    assert near_paths("/repo/src/confg.py", seen) == ("/repo/src/config.py",)
    assert near_paths("util/text.py", seen) == ("/repo/lib/util/text.py",)
    assert near_paths("/repo/util/text.py", seen) == ("/repo/lib/util/text.py",)
    assert near_paths("/repo/srcs", seen) == ("/repo/src",)
    assert near_paths("/repo/src/server.py", seen) == ()
    assert near_paths("/etc/hosts", seen) == ()


def test_a_near_text_is_no_text_that_is_there() -> None:
    assert nearest_text("a = 1", ["a = 1\nb = 2\n"]) is None
    assert nearest_text("total = sum(xs)", ["x\ntotal = sum(x)\ny"]) == "total = sum(x)"
    assert nearest_text("total = sum(xs)", ["nothing of the kind"]) is None


@pytest.mark.data
@pytest.mark.parametrize("kit", ["codex-opencode", "gemini-qwen-cline"])
def test_each_recorded_payload_gets_an_answer_that_its_client_follows(kit: str, post: Post) -> None:
    """Nothing is changed in a form, or for an event, in which the client was seen to ignore it."""
    path = data.path(f"clients/hooks/{kit}/payloads.jsonl")
    if not path.exists():
        pytest.skip(NO_DATA)
    answered = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["payload"] is None:
            continue
        payload = row["payload"] | {"event": row["event"], "servers": ["tiny"]}
        if row["client"] != "opencode":
            payload = row["payload"]
        answer = post(row["client"], payload)
        answered += answer != {}
        if row["client"] == "qwen":
            assert input_in(answer) is None
        if row["client"] == "cline":
            assert "cancel" not in answer
        if row["client"] == "gemini" and row["event"] == "AfterTool":
            error = row["payload"]["tool_response"].get("error")
            assert not (error and "additionalContext" in json.dumps(answer))
    assert answered > 10
    assert read_client("codex").seen
