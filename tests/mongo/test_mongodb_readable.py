"""What a record of the log shows to people, and that its event comes out of it byte for byte."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json
from pymongo import AsyncMongoClient

from aftercall.models import Execution
from mongo.contents import execution_event
from mongo.mongodb.database import Record
from mongo.mongodb.readable import LARGE_BYTES, event_content, event_fields, event_id
from mongo.records import Commit, Counter, Event, Removal, Row, ToolKey, encode_json
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern
from tests.mongo.conftest import mongo_options, open_mongo
from tests.mongo.store_samples import WORKSPACE, closing, read_all

_CODEC = CodecOptions[dict[str, Any]](tz_aware=True)

ID = "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d"
OTHER = ID.replace("0b", "1b")
CALL: dict[str, Any] = {
    "executionId": ID, "timestamp": "2026-11-29T18:00:01.234567Z", "agent": "librarian",
    "serverName": "rag-server", "toolName": "rag_query", "sessionId": "s-1",
    "parameters": {"query": "x", "topK": 50}, "outcome": "failure", "durationMs": 12.5,
    "error": {"type": "ValidationError", "message": "topK must be <= 10"},
}  # fmt: skip


def event_of(weight: int = 1, **fields: Any) -> Event:
    """An event as the intake makes it."""
    execution = Execution.model_validate(CALL | fields)
    return execution_event(
        WORKSPACE, execution, content_hash="h", schema_hash=None, input_schema=None,
        stands_for=weight,
    )  # fmt: skip


def stored(event: Event) -> dict[str, Any]:
    """The fields of an event's record, as they come back from a server."""
    found: dict[str, Any] = bson.decode(bson.encode(event_fields(event)), codec_options=_CODEC)
    return found


def test_an_execution_is_the_fields_of_the_wire_contract() -> None:
    """Its time is a date; nothing stands there twice."""
    fields = stored(event_of(weight=3))
    assert fields["parameters"] == {"query": "x", "topK": 50}
    assert fields["error"]["message"] == "topK must be <= 10"
    assert fields["timestamp"] == datetime(2026, 11, 29, 18, 0, 1, 234000, UTC)
    assert (fields["timestampUs"], fields["standsFor"]) == (567, 3)
    assert not {"data", "id", "content"} & fields.keys()
    assert event_id(fields) == ID


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"timestamp": "2026-11-29T18:00:01Z"}, {"timestamp": "2026-11-29T18:00:01.5+02:00"},
        {"serverName": None}, {"sessionId": None}, {"durationMs": 0},
        {"parameters": {"n": 2**40, "f": 1.0, "z": -0.0}},
        {"result": [{"a": None}, True, "ü \u2028"]},
    ],
)  # fmt: skip
def test_what_bson_holds_is_not_kept_twice(fields: dict[str, Any]) -> None:
    """Whatever form the time has."""
    event = event_of(**fields)
    record = stored(event)
    assert event_content("execution", record) == event.data
    assert "data" not in record
    assert record["serverName"] == (fields.get("serverName", "rag-server") or "")


@pytest.mark.parametrize(
    "value",
    [
        2**70, {"a.b": 1}, {"$and": 1}, {"": 1}, [[1], [2]], {"a\x00": 1},
        json.loads("[" + '{"a":' * 70 + "1" + "}" * 70 + "]"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_bson_does_not_hold_is_kept_beside(value: Any) -> None:
    """The other fields can be queried all the same; nothing is lost."""
    body = json.dumps({"execution": {**CALL, "parameters": {"x": value}}}, separators=(",", ":"))
    event = Event("execution", ID, body.encode(), ToolKey(WORKSPACE, "rag-server", "rag_query"))
    record = stored(event)
    assert record["data"] == event.data
    assert "parameters" not in record
    assert record["outcome"] == "failure"
    assert event_content("execution", record) == event.data


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff", b"[1]", b"null", b'{"execution": 5}', b'{"execution":{"data":1}}',
        b'{"execution":{"_id":1,"position":7}}', b'{"execution":{"toolName":"another"}}',
        b'{ "execution" : {"toolName" :"t"}}', b'{"other":1}', b'{"execution":{"a":1e400}}',
        b'{"execution":{"a":1,"a":2}}', b'{"execution":{"timestamp":5}}',
        b'{"execution":{"timestamp":"0999-01-01T00:00:00Z"}}',
        b'{"execution":{"timestamp":"2026-11-29T18:00:00+01:00"}}',
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("kind", ["execution", "mark"])
def test_whatever_an_event_holds_comes_out_as_it_went_in(data: bytes, kind: Any) -> None:
    """Also what no intake makes."""
    event = Event(kind, "e-9", data, ToolKey(WORKSPACE, None, "t"))
    record = stored(event)
    assert event_content(kind, record) == data
    assert event_id(record) == "e-9"
    assert record["toolName"] == "t"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*CALL, "content", "x", ""]), _JSON), st.integers(1, 9))
def test_any_json_comes_out_as_it_went_in(called: dict[str, Any], weight: int) -> None:
    """Whatever a call holds, in whatever order."""
    for data in (
        to_json({"execution": called}),
        to_json({"execution": called, "stands_for": weight}),
        to_json({"stands_for": weight, "execution": called}),
    ):
        event = Event("execution", "e-1", data, ToolKey(WORKSPACE, "s", "t"))
        assert event_content("execution", stored(event)) == data
        event = Event("outcome", "e-1", data, None)
        assert event_content("outcome", stored(event)) == data


def test_of_a_large_event_only_what_is_small_is_a_field() -> None:
    """As BSON a list of numbers would take six times the room."""
    event = event_of(result=[1] * LARGE_BYTES)
    record = stored(event)
    assert record["data"] == event.data
    assert "result" not in record
    assert record["parameters"]["topK"] == 50
    assert len(bson.encode(record)) < len(event.data) + 1000


async def test_events_of_all_kinds_come_out_of_the_log_as_they_went_in(tmp_path: Path) -> None:
    """Read on, found by id and as the latest; through commands and with times of their own."""
    events = [
        event_of(),
        event_of(executionId=OTHER, serverName=None, result={"a.b": [[2**70]]}),
        Event("mark", "m-1", b'{"severity":"high","at":"2026-11-29T18:00:01.234567Z"}'),
        Event("mark", "m-2", b"\xff"),
    ]
    async with closing(await open_mongo(tmp_path)) as store:
        assert await store.events.append(WORKSPACE, events) == ["accepted"] * 4
        assert await store.events.append(WORKSPACE, events) == ["duplicate"] * 4
        found = await read_all(store.events)
        assert [each.data for each in found] == [each.data for each in events]
        assert [each.id for each in found] == [each.id for each in events]
        assert [each.tool for each in found] == [each.tool for each in events]
        [again] = await store.events.find_events(WORKSPACE, "execution", [OTHER])
        assert again == found[1]
        assert await store.events.latest_events(WORKSPACE, "mark", 1) == [found[3]]


async def test_patterns_and_counters_say_in_fields_what_they_are(tmp_path: Path) -> None:
    """As seed 004's document has it; a field that is gone from a pattern goes, and so do all."""
    pattern = ConsolidatedPattern(
        pattern_id="p", server_name="rag-server", tool_name="rag_query", category="timeout",
        leader="x", count=7, error_type="Timeout", mistake="too much", correction="less",
        agents=["a"], lesson="ask for less", last_seen=datetime(2026, 11, 1, tzinfo=UTC),
    )  # fmt: skip
    tool = ToolKey(WORKSPACE, "rag-server", "rag_query")
    row = Row("pattern", "p", encode_json(pattern, sparse=True), tool, 7)
    options = await mongo_options(tmp_path)
    async with (
        closing(await open_mongo(tmp_path)) as store,
        AsyncMongoClient[Record](options.uri, tz_aware=True) as client,
    ):
        database = client[options.database]
        counted = {Counter("calls", 490_000, tool): 3}
        await store.knowledge.commit(Commit(WORKSPACE, [row], counters=counted))
        [found] = await database["REFLECTION_PATTERNS"].find({}).to_list()
        assert found["errorType"] == "Timeout"
        assert found["commonMistake"] == "too much"
        assert (found["correction"], found["lesson"]) == ("less", "ask for less")
        assert (found["frequency"], found["agentsAffected"]) == (7, ["a"])
        assert found["lastSeen"] == datetime(2026, 11, 1, tzinfo=UTC)
        [counter] = await database["TOOL_STATISTICS"].find({}).to_list()
        assert (counter["what"], counter["number"]) == ("calls", 3)
        assert (counter["serverName"], counter["toolName"]) == ("rag-server", "rag_query")
        assert counter["at"] == datetime(2025, 11, 24, 16, tzinfo=UTC)
        poorer = pattern.model_copy(update={"correction": ""})
        data = encode_json(poorer, sparse=True)
        await store.knowledge.commit(Commit(WORKSPACE, [replace(row, data=data)]))
        [found] = await database["REFLECTION_PATTERNS"].find({}).to_list()
        assert "correction" not in found
        assert [each.data for each in await store.knowledge.get(WORKSPACE, "pattern", ["p"])] == [
            data
        ]
        await store.knowledge.commit(Commit(WORKSPACE, removed=[Removal("pattern", "p")]))
        [found] = await database["REFLECTION_PATTERNS"].find({}).to_list()
        assert not {"lesson", "agentsAffected", "data"} & found.keys()
