"""Calls that were repaired wrongly, or not at all, when the product was measured from outside."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aftercall.models import ToolAnnotations
from bench.quality.brain import open_brain
from bench.quality.laws.asking import Asker, Reply
from bench.quality.laws.case import Case, Past
from embeddings.embedders import HashingEmbedder

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
DESTROYS = ToolAnnotations(read_only_hint=False, destructive_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False)
READS = ToolAnnotations(read_only_hint=True)
EVEN = 0.5
TOLERANCE = 0.05


def schema_of(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required),
            "additionalProperties": False}  # fmt: skip


def case_of(
    tool: str,
    call: Json,
    message: str,
    schema: Json | None,
    hints: ToolAnnotations | None = None,
    history: tuple[Past, ...] = (),
) -> Case:
    return Case("named", tool, tool, "server", call, {"type": "ToolError", "message": message},
                schema, hints=hints, history=history)  # fmt: skip


@pytest.fixture
async def asker() -> AsyncIterator[Asker]:
    async with open_brain(HashingEmbedder()) as brain:
        yield Asker(brain)


def done(reply: Reply) -> list[Json]:
    """The calls that would be sent in the place of the case's without asking."""
    offered = zip(reply.suggested.suggestions, reply.repairs, strict=True)
    safe = [repaired for suggestion, repaired in offered if suggestion.safe and repaired]
    return [each for each in (*safe, reply.before, reply.sent) if each is not None]


@pytest.mark.parametrize(
    ("tool", "places", "call"),
    [
        ("ban", ("channelName", "user"), {"name": "bob"}),
        ("delete_record", ("email", "userId"), {"id": "alice@example.org"}),
    ],
)
async def test_of_two_open_places_neither_is_filled_unasked(
    asker: Asker, tool: str, places: tuple[str, ...], call: Json
) -> None:
    """Neither before the call nor after it, however near one of the names is."""
    [key] = call
    schema = schema_of(**dict.fromkeys(places, TEXT))
    message = f"Additional properties are not allowed ('{key}' was unexpected)"
    reply = await asker.reply(case_of(tool, call, message, schema, DESTROYS))
    assert done(reply) == []


async def test_a_key_with_a_meaning_is_not_lost_in_silence(asker: Asker) -> None:
    """`{"title": "about"}` for a text is not `about`: the word `title` would be gone."""
    schema = schema_of(("path", "content"), path=TEXT, content=TEXT)
    call = {"path": "about.md", "content": {"title": "about"}}
    message = "Input validation error: {'title': 'about'} is not of type 'string'"
    reply = await asker.reply(case_of("write_file", call, message, schema, WRITES))
    assert [each for each in done(reply) if each["content"] == "about"] == []
    bare = [suggestion.change_class
            for suggestion, repaired in zip(reply.suggested.suggestions, reply.repairs, strict=True)
            if repaired and repaired.get("content") == "about"]  # fmt: skip
    assert "lossless" not in bare


@pytest.mark.parametrize("with_schema", [True, False])
async def test_a_list_written_as_text_becomes_the_list(asker: Asker, *, with_schema: bool) -> None:
    """A sequence was expected, and the text holds one; its one element is not meant."""
    schema = schema_of(query=TEXT, providers={"type": "array", "items": TEXT})
    call = {"query": "Blue Train", "providers": '["discogs"]'}
    message = 'invalid type: string "[\\"discogs\\"]", expected a sequence'
    case = case_of("search_albums", call, message, schema if with_schema else None)
    reply = await asker.reply(case)
    assert {str(each["providers"]) for each in done(reply)} <= {"['discogs']"}


async def test_an_empty_schema_of_the_server_takes_no_parameters_away(asker: Asker) -> None:
    """`{"properties": {}}` says nothing about what the tool takes."""
    call = {"query": "walnut", "from": "2026-01-01", "to": "2026-02-01", "page": 2, "sort": "date"}
    message = "Invalid arguments"
    reply = await asker.reply(case_of("search_notes", call, message, {"properties": {}}, READS))
    assert [each for each in done(reply) if each.keys() != call.keys()] == []
    assert [each for each in reply.repairs if each is not None and len(each) < 2] == []


async def test_a_place_on_earth_is_asked_about_and_not_clamped(asker: Asker) -> None:
    """A longitude of 373.41 is a slip; 180 is a place that nobody meant."""
    number: Json = {"type": "number"}
    schema = schema_of(
        ("latitude", "longitude"),
        latitude={**number, "minimum": -90, "maximum": 90},
        longitude={**number, "minimum": -180, "maximum": 180},
    )
    call = {"latitude": 52.52, "longitude": 373.41}
    reply = await asker.reply(
        case_of("get_forecast", call, "longitude must be <= 180", schema, READS)
    )
    assert [each for each in reply.repairs if each and each["longitude"] == 180] == []
    assert done(reply) == []


async def test_a_quoted_word_of_a_description_does_not_replace_a_text(asker: Asker) -> None:
    """`MUST start with "aws"` is no list of values."""
    described = {**TEXT, "description": 'The AWS CLI command; MUST start with "aws"'}
    call = {"command": "s3 ls my-bucket --recursive"}
    message = "command is not a valid AWS CLI command"
    reply = await asker.reply(
        case_of("call_aws", call, message, schema_of(("command",), command=described))
    )
    assert [each for each in reply.repairs if each and "my-bucket" not in each["command"]] == []


FILES = schema_of(
    ("files",),
    files={"type": "array", "items": schema_of(("path", "contents"), path=TEXT, contents=TEXT)},
)
ODD = (
    "    return 2\n", "two columns   ", "\tname\tvalue", '"quoted"', "'quoted'", "select 1;",
    "The end.", "a,", "(x)", "{}", "[1, 2]", '{"a": 1}', "**bold** and `code`", "1.0", "\r\n",
)  # fmt: skip


@pytest.mark.parametrize("contents", ODD)
async def test_a_rename_in_a_list_changes_no_text_beside_it(asker: Asker, contents: str) -> None:
    """The indentation of a source file is the caller's, byte for byte."""
    call = {"files": [{"file_path": "a.py", "contents": contents}]}
    message = (
        "1 validation error for write_files\nfiles.0.path\n  Field required [type=missing, "
        "input_value={'file_path': 'a.py'}, input_type=dict]"
    )
    reply = await asker.reply(case_of("write_files", call, message, FILES, WRITES))
    repaired = [each for each in (*reply.repairs, reply.before, reply.sent) if each is not None]
    assert {each["files"][0]["contents"] for each in repaired} <= {contents}
    assert [each["files"][0].get("path") for each in repaired[:1]] == ["a.py"]
    assert reply.first is not None
    assert [each.path for each in reply.first.changes] == [
        "/files/0/file_path", "/files/0/path"
    ]  # fmt: skip


BESIDE: dict[str, tuple[str, Json, Any]] = {
    "token": ("api_token", TEXT, "tok_4fK9x2LmQ8vT7bWz3RhYpN6c"),
    "password": ("password", TEXT, "Winter-2026!harbour"),
    "passport": ("passport_number", TEXT, "C01X00T47"),
    "object": ("address", schema_of(street=TEXT, floor={"type": "integer"}),
               {"street": "Harbour Street 12", "floor": 3}),
    "code": ("script", TEXT, "def f():\n    # **all** of `rows`\n    return 2\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BESIDE)
async def test_what_is_right_beside_the_fault_changes_nothing(asker: Asker, kind: str) -> None:
    """A token, an object or code that the schema knows is no reason for a doubt."""
    name, of, value = BESIDE[kind]
    properties = {"title": TEXT, "page_size": {"type": "integer"}}
    call = {"title": "walnut", "pageSize": 5}
    message = (
        "Input validation error: Additional properties are not allowed ('pageSize' was unexpected)"
    )
    alone = await asker.reply(case_of("list_rooms", call, message, schema_of(**properties)))
    both = await asker.reply(
        case_of("list_rooms", {**call, name: value}, message, schema_of(**properties, **{name: of}))
    )
    assert alone.repaired == {"title": "walnut", "page_size": 5}
    assert both.repaired == {**alone.repaired, name: value}
    assert both.change_class == alone.change_class
    assert both.confidence == pytest.approx(alone.confidence, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("call", "place", "of"),
    [
        ({"query": "walnut", "except": "T-1"}, "taskId", TEXT),
        ({"query": "walnut", "line": 12}, "position", {"type": "integer"}),
    ],
)
async def test_a_name_that_is_left_over_is_not_likelier_than_not(
    asker: Asker, call: Json, place: str, of: Json
) -> None:
    """`except` is no other word for `taskId`, nor `line` for `position`."""
    unknown = list(call)[-1]
    message = f"Unrecognized key(s) in object: '{unknown}'"
    schema = schema_of(("query",), **{"query": TEXT, place: of})
    reply = await asker.reply(case_of("find_tasks", call, message, schema))
    offered = zip(reply.suggested.suggestions, reply.repairs, strict=True)
    likely = [repaired for each, repaired in offered if each.confidence >= EVEN]
    assert [each for each in (*likely, *done(reply)) if each and place in each] == []


async def test_a_value_of_another_server_is_not_proposed(asker: Asker) -> None:
    """What `query` is elsewhere, a search for a fox, is no statement of SQL."""
    history = tuple(
        Past(f"agent-{at}", f"session-{at}", "search_animals", "zoo", {"query": "fox", "page": at})
        for at in range(6)
    )
    schema = schema_of(("query",), query=TEXT, database=TEXT)
    case = case_of("run_sql", {"database": "shop"}, "'query' is a required property", schema,
                   history=history)  # fmt: skip
    reply = await asker.reply(case)
    assert [each for each in reply.repairs if each and "query" in each] == []


@pytest.mark.parametrize("hints", [WRITES, DESTROYS, READS])
async def test_a_rename_that_the_live_schema_proves_is_done_on_every_tool(
    asker: Asker, hints: ToolAnnotations
) -> None:
    """It refused the call as it was sent, and takes it as it is repaired."""
    schema = schema_of(("file_path", "content"), file_path=TEXT, content=TEXT, mode=TEXT)
    call = {"filePath": "a.py", "content": "x = 1\n"}
    message = "Additional properties are not allowed ('filePath' was unexpected)"
    reply = await asker.reply(case_of("store_file", call, message, schema, hints))
    assert reply.sent == {"file_path": "a.py", "content": "x = 1\n"}
    assert reply.change_class == "lossless"
