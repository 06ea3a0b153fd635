"""`aftercall import`: spans, transcripts and MCP logs into a running service."""

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.formats.calls import Given
from ingest.formats.detection import LOOK_BYTES, look_at
from service import imports
from service.imports import MAX_DOCUMENT, ImportReport, read_calls
from tests.ingest.exports import observation, outcome, run, session_line, use
from tests.ingest.otlp_samples import START_NS, request, span, tool_span
from tests.ingest.transcripts import AT, HELLO, answered, call, called, result, rpc, texts, user
from tests.service.running_service import RunningService, eventually, execution, finished

REFUSED = "Invalid value for parameter `unit`"
"""Says nothing of the value that is wanted: that can only be learned."""


def wrong(number: int) -> dict[str, str]:
    return {"city": f"city {number}", "unit": "celsius"}


def right(number: int) -> dict[str, str]:
    return {"city": f"city {number}", "unit": "metric"}


def tap(tool: str, number: int = 0) -> list[dict[str, Any]]:
    """A session of a client: a failure and the call that mended it."""
    return [
        *HELLO,
        rpc(1, "tools/list"),
        result(1, {"tools": [{"name": tool, "inputSchema": {"type": "object"}}]}),
        call(2, tool, wrong(number)),
        result(2, texts(REFUSED, isError=True)),
        call(3, tool, right(number)),
        result(3, texts("sun")),
    ]


def transcript(tool: str, number: int = 0, **more: Any) -> dict[str, Any]:
    """The same as a conversation."""
    messages = [
        user("the weather, please"),
        called("c1", tool, wrong(number)),
        answered("c1", json.dumps({"error": REFUSED})),
        called("c2", tool, right(number)),
        answered("c2", "sun"),
    ]
    return {"messages": messages, **more}


def spans(tool: str, number: int = 0) -> dict[str, Any]:
    """The same as spans of the GenAI conventions."""

    def each(second: int, arguments: object, **fields: Any) -> dict[str, Any]:
        more = {
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.conversation.id": f"s-{number}",
        }
        start = {"startTimeUnixNano": str(START_NS + second * 10**9)}
        return tool_span(1000 * len(tool) + 10 * number + second, more=more, **start, **fields)

    refused = {"status": {"code": 2, "message": REFUSED}}
    return request(each(1, wrong(number), **refused), each(2, right(number)))


def lines_of(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def learned(service: RunningService, tool: str) -> bool:
    """Whether the service answers with what mended the calls that were imported."""
    server = {"serverName": "weather"} if tool.startswith("mcp") else {}
    question = {
        "agent": "librarian" if tool.startswith("otlp") else "ada",  # as the spans have it
        "toolName": tool,
        "parameters": {"city": "Rome", "unit": "celsius"},
        "error": {"message": REFUSED},
        **server,
    }
    answer = service.client.post("/suggest", json={"execution": question}).json()
    return any(
        suggestion["correctedParameters"] == {"city": "Rome", "unit": "metric"}
        and suggestion["evidence"]["repairs"] == 3
        and all(
            service.client.get(f"/executions/{each}").json()["toolName"] == tool
            for each in suggestion["evidence"]["executionIds"]
        )
        for suggestion in answer["suggestions"]
    )


def claude_code(tool: str, number: int = 0) -> str:
    """The same as the lines of a session."""
    ids = [f"toolu_{number}{place}" for place in range(2)]
    turns = [
        {"role": "user", "content": "the weather, please"},
        *(
            turn
            for key, arguments, said in zip(
                ids, (wrong(number), right(number)), (REFUSED, "sun"), strict=True
            )
            for turn in (
                {"role": "assistant", "content": [use(key, tool, arguments)]},
                {"role": "user", "content": [outcome(key, said, failed=said == REFUSED)]},
            )
        ),
    ]
    lines = [{"type": "summary", "summary": "Weather", "leafUuid": "u4"}]
    for place, turn in enumerate(turns):
        at = (AT + timedelta(seconds=60 * number + place)).isoformat()
        lines.append(session_line(turn, session=f"s{number}", at=at, uuid=f"u{place}"))
    return lines_of(*lines)


def requests(tool: str, number: int = 0) -> dict[str, Any]:
    """The same as a logged request of the Messages API."""
    lines = [json.loads(line) for line in claude_code(tool, number).splitlines()]
    return {"model": "claude", "messages": [each["message"] for each in lines[1:]]}


def runs(tool: str, number: int = 0) -> dict[str, Any]:
    """The same as a trace of LangSmith."""
    calls = [
        run(tool, wrong(number), error=f"ToolException({REFUSED!r})", at=number * 60),
        run(tool, right(number), output="sun", at=number * 60 + 1),
    ]
    return {**run("agent", {}, kind="chain", at=number * 60), "child_runs": calls}


def observations(tool: str, number: int = 0) -> dict[str, Any]:
    """The same as a trace of Langfuse."""
    calls = [
        observation(tool, wrong(number), level="ERROR", statusMessage=REFUSED, at=number * 60),
        observation(tool, right(number), output="sun", at=number * 60 + 1),
    ]
    return {"trace": {"id": f"t{number}", "sessionId": f"s{number}"}, "observations": calls}


SESSIONS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "chat": transcript, "otlp": spans, "request": requests, "run": runs,
    "observation": observations,
}  # fmt: skip
"""What a line of a file holds; a log of MCP is many lines of each session."""


def three(kind: str, tool: str) -> list[Any]:
    """The values of a file of three sessions."""
    if kind == "mcp":
        return [each for number in range(3) for each in tap(tool, number)]
    return [SESSIONS[kind](tool, number) for number in range(3)]


@pytest.mark.real
@pytest.mark.parametrize("kind", [*SESSIONS, "mcp", "claude_code"])
def test_a_file_is_recorded_and_learned_from(
    service: RunningService, tmp_path: Path, kind: str
) -> None:
    """Told by its content; what mended the failures is what the service then suggests.

    A second import finds only duplicates, also of a copy with another time, for another agent.
    """
    file, tool = tmp_path / "whatever.txt", f"{kind}_tool"
    if kind == "claude_code":
        file.write_text("".join(claude_code(tool, number) for number in range(3)))
    else:
        file.write_text(lines_of(*three(kind, tool)))
    status, out, _ = finished("import", str(file), "--service", service.url, "--agent", "ada")
    assert (status, out) == (0, "6 accepted, 0 duplicates, 0 rejected\n")
    assert eventually(lambda: learned(service, tool))
    os.utime(file, (1, 1_700_000_000))
    status, out, _ = finished("import", str(file), "--service", service.url, "--agent", "ben")
    assert (status, out) == (0, "0 accepted, 6 duplicates, 0 rejected\n")


@pytest.mark.real
def test_a_span_in_another_batch_is_the_same_span(service: RunningService, tmp_path: Path) -> None:
    """Other spans around it name its agent; another span with its ids is refused."""
    above = span(301, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ada"})
    told = tool_span(302, parentSpanId=above["spanId"], more={"gen_ai.agent.name": ...})
    other = told | {"startTimeUnixNano": str(START_NS + 10**9)}
    file = tmp_path / "spans.jsonl"
    file.write_text(lines_of(request(told), request(above, told), request(other)))
    status, out, err = finished("import", str(file), "--service", service.url)
    assert (status, out) == (0, "1 accepted, 1 duplicates, 1 rejected\n"), err
    assert "line 3" in err


def test_a_dry_run_counts_failures_and_names_what_could_not_be_read() -> None:
    """Each with its place and the reason."""
    broken = [called(f"c{number}", "", {}) for number in range(30)]
    told = lines_of(transcript("search"), {"messages": broken}) + '{"messages": [{"role"'
    status, out, err = finished("import", "-", "--dry-run", stdin=told)
    assert (status, out) == (0, "2 valid, 0 duplicates, 31 rejected\n")
    said = err.splitlines()
    assert said[0] == "aftercall: reading - as transcripts"
    assert said[1].startswith("aftercall: line 2, messages[0].tool_calls[0]: ")
    assert any(each.startswith("aftercall: line 3: malformed JSON") for each in said)
    assert said[-1] == "aftercall: 1 of 2 calls failed"


def test_folders_zips_and_utf_16_are_read_and_kinds_are_counted(tmp_path: Path) -> None:
    """What is of no kind that is read is counted; a second copy is a duplicate, as when sent."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.json").write_text(json.dumps(transcript("a")), "utf-16")
    with zipfile.ZipFile(tmp_path / "two.eval", "w") as archive:
        archive.writestr("samples/1.json", json.dumps(transcript("b")))
        archive.writestr("header.txt", "nothing")
    (tmp_path / "three.jsonl").write_text(lines_of(*transcript("c")["messages"]))
    (tmp_path / "notes.md").write_text("# notes")
    status, out, err = finished("import", str(tmp_path), "--dry-run")
    assert (status, out) == (0, "6 valid, 0 duplicates, 0 rejected\n")
    assert "3 files look like messages of OpenAI's APIs" in err
    assert "1 .md file passed over" in err
    assert "6 calls of 3 tools" in err
    assert "3 failures, 3 of them followed by a success" in err
    pattern = str(tmp_path / "**" / "*.json*")
    status, out, _ = finished("import", pattern, str(tmp_path / "two.eval"), "--dry-run")
    assert (status, out) == (0, "6 valid, 0 duplicates, 0 rejected\n")
    status, _, err = finished("import", str(tmp_path / "*.none"), "--dry-run")
    assert status == 1
    assert "means no file" in err


def test_a_folder_with_a_file_an_event_is_read_as_one_session(tmp_path: Path) -> None:
    """Calls and results find each other across the files of a folder, and of no other folder."""
    for folder, said in (("one", "sun"), ("two", "rain")):
        (tmp_path / folder).mkdir()
        asked = {"kind": "ActionEvent", "tool_name": "lookup", "tool_call_id": "c1",
                 "tool_call": {"arguments": '{"city": "Oslo"}'}}  # fmt: skip
        answer = {"kind": "ObservationEvent", "tool_call_id": "c1", "tool_name": "lookup",
                  "observation": {"content": [{"type": "text", "text": said}]}}  # fmt: skip
        open_call = asked | {"tool_call_id": "c2"}
        for number, event in enumerate((asked, answer, open_call)):
            path = tmp_path / folder / f"event-{number}.json"
            path.write_text(json.dumps(event, indent=number or None))
    # Lines of one file belong together, however few they are.
    lines = [called("c9", "book", {"seat": 1}), answered("c9", "done")]
    (tmp_path / "two" / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
    status, out, err = finished("import", "--dry-run", str(tmp_path))
    assert (status, out) == (0, "3 valid, 0 duplicates, 0 rejected\n")
    assert "left out, 2: the call has no result here" in err


def test_the_last_call_of_an_interrupted_session_is_left_out() -> None:
    """It is counted by its reason, and no rejection; results that read as errors are told of."""
    told = [
        called("c1", "book", {"seat": 1}), answered("c1", "Error: no such seat: 1"),
        called("c2", "book", {"seat": 2}),
    ]  # fmt: skip
    status, out, err = finished("import", "-", "--dry-run", stdin=json.dumps(told))
    assert (status, out) == (0, "1 valid, 0 duplicates, 0 rejected\n")
    assert "left out, 1: the call has no result here" in err
    assert "1 of 1 results begin with `Error:`" in err
    by_pattern = ("--dry-run", "--error-pattern", "no such thing")
    assert "0 of 1 calls failed" in finished("import", "-", *by_pattern, stdin=json.dumps(told))[2]


def test_a_dry_run_refuses_what_is_older_than_the_retention() -> None:
    """As the service would, naming the setting."""
    old = lines_of(execution(timestamp="2020-01-01T00:00:00Z"))
    environ = {"AFTERCALL_RETENTION_DAYS": "90"}
    status, out, err = finished("import", "-", "--dry-run", stdin=old, environ=environ)
    assert (status, out) == (1, "0 valid, 0 duplicates, 1 rejected\n")
    assert "AFTERCALL_RETENTION_DAYS" in err
    environ = {"AFTERCALL_RETENTION_DAYS": "0"}
    status, out, _ = finished("import", "-", "--dry-run", stdin=old, environ=environ)
    assert (status, out) == (0, "1 valid, 0 duplicates, 0 rejected\n")


@pytest.mark.real
def test_a_person_may_say_what_the_file_is_and_how_failures_begin(tmp_path: Path) -> None:
    """`--format`, `--error-prefix`."""
    told = [called("c", "t", {}), answered("c", "Error: no seats"), {"meta": 1}]
    file = tmp_path / "calls.json"
    file.write_text(json.dumps(told))
    as_transcripts = ("--dry-run", "--format", "transcripts", "--error-prefix", "Error:")
    status, out, err = finished("import", str(file), *as_transcripts)
    assert (status, out) == (0, "1 valid, 0 duplicates, 0 rejected\n")
    assert "aftercall: 1 of 1 calls failed" in err
    status, out, err = finished("import", str(file), "--dry-run", "--format", "executions")
    assert (status, out) == (1, "0 valid, 0 duplicates, 1 rejected\n")
    for wrong in (("--error-prefix", " "), ("--format", "xml")):
        assert finished("import", str(file), *wrong)[0] == 2


@pytest.mark.real
def test_secrets_in_a_transcript_never_leave_the_process(
    service: RunningService, tmp_path: Path
) -> None:
    """They are masked in parameters, results and the context."""
    key = "sk-" + "a1B2c3D4" * 6
    told = [
        user(f"my key is {key}"),
        called("c1", "login", {"password": "hunter2hunter2"}),
        answered("c1", f"hunter2hunter2 and {key}"),
    ]
    file = tmp_path / "chat.jsonl.gz"
    file.write_bytes(gzip.compress(lines_of({"messages": told}).encode()))
    status, out, _ = finished("import", str(file), "--service", service.url)
    assert (status, out) == (0, "1 accepted, 0 duplicates, 0 rejected\n")
    stream = io.BytesIO(lines_of({"messages": told}).encode())
    (placed,) = read_calls(stream, look_at(b"", "transcripts"), Given(at=AT))
    stored = service.client.get(f"/executions/{placed.read.execution_id}").text  # type: ignore[union-attr]
    assert "[redacted:" in stored
    assert "hunter2" not in stored
    assert key not in stored


def of(raw: bytes, wanted: Any = None) -> list[Any]:
    """What a file's bytes say."""
    chosen = look_at(raw[:LOOK_BYTES], wanted)
    return [each.read for each in read_calls(io.BytesIO(raw), chosen, Given(at=AT))]


def test_damaged_lines_lose_nothing_else() -> None:
    """Of each format: half a line, junk, and a blank one between good ones."""
    junk = [b'{"half": ', b"\xff\xfe", b"", b"[" * 3000, b'{"a": ' * 3000, b"7", b"null"]
    good = {
        "executions": [execution()],
        "transcripts": [transcript("t")],
        "mcp": tap("t"),
        "otlp": [spans("t")],
    }
    for wanted, values in good.items():
        lines = [json.dumps(value).encode() for value in values]
        clean = of(b"\n".join(lines), wanted)
        mixed = of(b"\n".join([*junk, *lines, *junk]), wanted)
        kept = [each for each in mixed if hasattr(each, "execution_id")]
        assert kept == [each for each in clean if hasattr(each, "execution_id")] != []
        assert len(mixed) > len(clean)


@pytest.mark.parametrize("kind", [*SESSIONS, "mcp"])
def test_a_document_says_what_its_lines_say(kind: str) -> None:
    """A list over many lines; of spans, one request with all."""
    told: Any = three(kind, "t")
    lines = of(lines_of(*told).encode())
    if kind == "otlp":
        told = {"resourceSpans": [each for one in told for each in one["resourceSpans"]]}
    assert of(json.dumps(told, indent=2).encode()) == lines
    calls = [each.outcome for each in lines if hasattr(each, "outcome")]
    assert calls == ["failure", "success"] * 3


@pytest.mark.parametrize("indent", [None, 1, "\t"])
@pytest.mark.parametrize("wanted", ["transcripts", "mcp", "otlp"])
def test_a_byte_order_mark_hides_nothing(wanted: str, indent: Any) -> None:
    """Editors and shells on Windows put one before what they save."""
    entries = [{"timestamp": "2026-02-20T14:30:00Z", "message": each} for each in tap("t")]
    value = {"transcripts": transcript("t"), "mcp": entries, "otlp": spans("t")}[wanted]
    raw = json.dumps(value, indent=indent).encode()
    assert any(hasattr(each, "execution_id") for each in of(raw))
    assert of(b"\xef\xbb\xbf" + raw) == of(raw)


def test_values_one_behind_the_other_are_read_each() -> None:
    """As OpenTelemetry's exporter to the console writes; one that breaks off loses only itself."""
    told = "\n".join(json.dumps(transcript(name), indent=4) for name in "ab")
    read_all = of((told + '\n{\n "messages": [').encode())
    assert [each.tool_name for each in read_all[:4]] == ["a", "a", "b", "b"]
    assert len(read_all) == 5


def test_a_document_beyond_its_bound_says_how_to_cut_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read into memory."""
    assert MAX_DOCUMENT == 256 * 1024 * 1024
    monkeypatch.setattr(imports, "MAX_DOCUMENT", 100)
    (told,) = of(json.dumps([transcript("t")] * 3, indent=1).encode())
    assert "jq -c" in told.message


def test_what_a_file_says_does_not_steer_a_terminal() -> None:
    """Places and reasons are shown without control characters; a remark is told once."""
    said: list[str] = []
    report = ImportReport(said.append)
    report.reject_piece("line 1\r", "no \x9b31m")
    for number in range(3):
        report.note_once(f"{number} calls \x1b[2J")
    assert len(said) == 2
    assert all(line.isprintable() for line in said)


@pytest.mark.real
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no call was read: - holds nothing"),
        ("hello\n", "no call was read: - holds text that is no JSON"),
        (lines_of({"rows": 1, "name": "x"}), 'with "rows", "name"; if that is a format'),
        (lines_of(run("m", {}, kind="llm")), "as they are no calls of tools: 1 llm"),
        (lines_of(session_line({"role": "user", "content": "hi"})), 'with "parentUuid"'),
    ],
)
def test_nothing_read_is_an_error_that_says_what_is_there(content: str, said: str) -> None:
    """Exit 1, also where the format is known and holds no call."""
    status, out, err = finished("import", "-", "--dry-run", stdin=content)
    assert status == 1
    assert out.startswith("0 valid, 0 duplicates")
    assert said in err
