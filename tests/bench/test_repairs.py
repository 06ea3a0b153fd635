"""The benchmark of repairs: its cases, its judge, what it asks, and the entries that it brings."""

import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from bench import data
from bench.repairs import runner
from bench.repairs.cases import SETS, Case, learned, with_good_calls, written
from bench.repairs.environments import ROOT, Entry, read_entries
from bench.repairs.judge import Answer, Verdict, judge
from bench.repairs.runner import EntryError, ask_command, ask_url
from bench.repairs.table import count, table

FOLDER = ROOT / "bench" / "repairs"
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
    "additionalProperties": False,
}


def case(
    call: Any, *gold: Any, error: str | None = "limit: expected a number", **more: Any
) -> Case:
    question = {
        "id": "one", "server": "shop", "tool": "search", "schema": SCHEMA, "call": call,
        "error": error and {"message": error}, **more,
    }  # fmt: skip
    return Case(question, gold)


FAILED = case({"query": "tea", "limit": "5"}, {"query": "tea", "limit": 5})


def command_of(code: str) -> list[str]:
    """A command that answers each question with what the code makes of it, as `answer`."""
    lines = ("import json, sys", "for line in sys.stdin:", " question = json.loads(line)",
             f" {code}", " print(json.dumps(answer), flush=True)")  # fmt: skip
    return [sys.executable, "-c", "\n".join(lines)]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer({"query": "tea", "limit": 5}), Verdict("right")),
        (Answer({"query": "tea", "limit": 5.0}), Verdict("right")),
        (Answer({"query": "tea", "limit": True}), Verdict("wrong")),
        (Answer(None), Verdict("left alone")),
        (Answer({"query": "tea", "limit": "5"}), Verdict("left alone")),
        (Answer({"query": "tea"}), Verdict("wrong", is_silent=True)),
        (Answer({"query": "tea"}, is_followed=False), Verdict("wrong")),
        (Answer({"query": "tea", "limit": "five"}), Verdict("wrong")),
    ],
)
def test_wrong_is_silent_where_the_schema_takes_it_and_the_entry_sends_it(
    answer: Answer, verdict: Verdict
) -> None:
    """And right is what has the same values, whatever an entry says about itself."""
    assert judge(FAILED, answer) == verdict


def test_where_no_call_is_right_every_change_is_wrong() -> None:
    hopeless = case({"query": "tea", "limit": "5"})
    assert judge(hopeless, Answer({"query": "tea", "limit": 5})).kind == "wrong"
    assert judge(hopeless, Answer(None)).kind == "left alone"


def test_texts_that_hold_the_same_json_are_the_same() -> None:
    """A text is not the object that it holds: a tool that wants one refuses the other."""
    asked = case({"query": "{'a': 1}"}, {"query": '{"a": 1}'})
    assert judge(asked, Answer({"query": '{"a":1}'})).kind == "right"
    assert judge(asked, Answer({"query": {"a": 1}})).kind == "wrong"


def test_a_schema_that_is_unknown_or_broken_takes_every_call() -> None:
    for schema in (None, {"$ref": "#/nowhere"}, {"type": "nothing"}):
        asked = case({"query": 1}, {"query": "tea"}, schema=schema)
        assert judge(asked, Answer({"query": 2})) == Verdict("wrong", is_silent=True)


def test_the_entry_of_the_readme_is_whole_and_right() -> None:
    """A stranger copies it, and it runs."""
    code = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(code[0].splitlines()) <= 20
    [answer] = ask_command([sys.executable, "-c", code[0]], [FAILED.question])
    assert judge(FAILED, answer) == Verdict("right")


def test_questions_come_one_after_the_other_and_whole() -> None:
    """Unicode and line breaks in a call arrive; what is answered belongs to its question."""
    questions = [case({"query": text}).question for text in ("a\nb", "Tee für zwei ☕", "\u2028")]
    echo = command_of('answer = {"call": question["call"], "follow": False}')
    answers = ask_command(echo, questions)
    assert [each.call for each in answers] == [each["call"] for each in questions]
    assert not any(each.is_followed for each in answers)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sys.exit('no such model')", "ended at one\nno such model"),
        ("print('thinking')", "the answer to one is no JSON"),
        ("answer = 5", "has to be an object such as"),
        ('answer = {"call": "tea"}', "has to be an object such as"),
        ("answer = {}", "has to be an object such as"),
        ('answer = {"call": None, "follow": 1}', "true or false"),
    ],
)
def test_an_entry_that_breaks_the_protocol_is_told_how(code: str, said: str) -> None:
    """With what it printed to stderr, if it ended."""
    with pytest.raises(EntryError) as told:
        ask_command(command_of(code), [FAILED.question])
    assert said in str(told.value)


def test_an_entry_that_never_answers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SECONDS", 0.3)
    with pytest.raises(EntryError, match="no answer to one"):
        ask_command([sys.executable, "-c", "import time; time.sleep(60)"], [FAILED.question])


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """The address of a server that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            asked.append(json.loads(self.rfile.read(length)))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    asked: list[Any] = []
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/repair"
        server.shutdown()
    assert all(each == FAILED.question for each in asked)


def test_a_url_is_asked_the_same() -> None:
    with answering(200, b'{"call": {"query": "tea", "limit": 5}}') as url:
        assert [judge(FAILED, each).kind for each in ask_url(url, [FAILED.question])] == ["right"]
    with answering(500, b"{}") as url, pytest.raises(EntryError, match="answers one with 500"):
        ask_url(url, [FAILED.question])
    with pytest.raises(EntryError, match="does not answer one"):
        ask_url(url, [FAILED.question])


def test_the_written_cases_are_as_many_as_the_readme_says() -> None:
    """No right call is the one that failed, and every question has all its fields."""
    cases = list(written())
    assert len(cases) == 760
    assert sum(not each.gold for each in cases) == 152
    for each in cases:
        assert {"id", "server", "tool", "schema", "call", "error"} <= each.question.keys()
        for gold in each.gold:
            assert judge(each, Answer(gold)).kind == "right", each.question["id"]


def test_no_right_answer_stands_in_the_examples_of_a_learned_case() -> None:
    cases = list(learned())
    assert len(cases) == 202
    for each in cases:
        assert len(each.question["examples"]) == 2
        assert each.gold[0] not in [told["fixed"] for told in each.question["examples"]]


@pytest.mark.data
def test_the_field_cases_are_read_in_place() -> None:
    if not data.is_there("field/mcp.jsonl"):
        pytest.skip("no data")
    cases = list(SETS["field"]())
    assert len(cases) == 113
    assert sum(not each.gold for each in cases) == 40


def test_a_missing_field_set_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError, match="The field set is left out"):
        list(SETS["field"]())


def test_good_calls_are_what_was_meant_each_once() -> None:
    good = [each for each in with_good_calls([FAILED, FAILED, case({"query": 1})]) if each.is_good]
    assert [each.question["call"] for each in good] == [FAILED.gold[0]]
    assert judge(good[0], Answer(None)).kind == "left alone"


def test_the_schemas_of_the_written_cases_take_what_was_meant() -> None:
    for each in written():
        takes = jsonschema_rs.validator_for(each.question["schema"]).is_valid
        assert all(takes(gold) for gold in each.gold), each.question["id"]


def test_the_table_counts_each_verdict_once() -> None:
    [good] = [each for each in with_good_calls([FAILED]) if each.is_good]
    hopeless = case({"query": 1})
    judged = [
        (FAILED, Verdict("right")), (FAILED, Verdict("wrong", is_silent=True)),
        (FAILED, Verdict("left alone")), (hopeless, Verdict("wrong", is_silent=True)),
        (hopeless, Verdict("left alone")), (good, Verdict("right")), (good, Verdict("left alone")),
    ]  # fmt: skip
    rows = table({"ours": count(judged)}).splitlines()
    assert "of 3 that can be repaired" in rows[0]
    assert "of 2 that cannot" in rows[0]
    assert rows[2] == "| ours | 1 | 1 | 1 | 1 | 1 | 1 | 1 |"


def test_each_entry_names_its_versions_and_stands_in_the_folder() -> None:
    """So that the table means the same next year."""
    entries = read_entries()
    assert len({each.name for each in entries}) == len(entries)
    for each in entries:
        assert (FOLDER / "entries" / each.program).exists()
        assert each.about
        assert all("==" in package for package in each.pip)
        assert all("@" in package for package in each.npm)


def entry(name: str) -> Entry:
    return next(each for each in read_entries() if each.name == name)


@pytest.mark.parametrize("name", ["json-repair", "pydantic, lax"])
def test_entries_whose_packages_are_here_answer(name: str) -> None:
    """They are run as the benchmark runs them, with the packages that the tests have."""
    program = str(FOLDER / "entries" / entry(name).program)
    broken = case(
        {"query": "tea"}, {"query": "tea"}, schema={"properties": {"query": {"$ref": "#/no"}}}
    )
    found = ask_command([sys.executable, program], [FAILED.question, broken.question])
    assert [judge(FAILED, found[0]).kind, judge(broken, found[1]).kind] == ["right", "left alone"]


@pytest.mark.real
def test_aftercall_offers_follows_and_learns() -> None:
    """A repair that the schema gives is followed; what two agents fixed is offered to a third."""
    ours, followed = entry("Aftercall, offered"), entry("Aftercall, followed")
    taught = next(each for each in learned() if each.question["id"].startswith("rename"))
    good = next(each for each in with_good_calls([FAILED]) if each.is_good)
    questions = [FAILED.question, good.question, taught.question]
    for each in (ours, followed):
        answers = ask_command(each.command, questions, folder=ROOT, environment=each.environment)
        assert judge(FAILED, answers[0]) == Verdict("right")
        assert answers[0].is_followed
        assert judge(good, answers[1]).kind == "left alone"
        assert judge(taught, answers[2]).kind == "right" or each is followed
