"""The queries of docs/operations.md are answered by the database alone, by an index."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import pytest
from bson import json_util
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import OperationFailure

from aftercall.models import Execution
from bench import history
from mongo.contents import execution_event
from mongo.mongodb.database import UNKNOWN, Record
from mongo.mongodb.requirements import INDEXES
from tests.mongo.conftest import mongo_options, open_mongo
from tests.mongo.mongo_server import given_uri
from tests.mongo.store_samples import WORKSPACE, closing

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
SINCE = datetime(2026, 11, 1, tzinfo=UTC)
LOG = "TOOL_EXECUTION_LOG"


def parsed(text: str) -> Any:
    """What the shell would make of a literal; `since` is `SINCE`."""
    named = re.sub(r"([{,]\s*)([$\w]+):", r'\1"\2":', text)
    date = json_util.dumps(SINCE)
    return json_util.loads(re.sub(r"\bsince\b", date, named))


def queries() -> list[tuple[str, list[Record]]]:
    """The kind of each query of the page, and its stages: a find is its filter and its order."""
    page = PAGE.read_text().partition("## Ask the log")[2].partition("\n## ")[0]
    found = []
    for block in re.findall(r"```js\n(.*?)```", page, re.DOTALL):
        call = re.fullmatch(
            rf"db\.{LOG}\.(find|aggregate)\((.*?)(?:, {{allowDiskUse: true}})?\)"
            r"(?:\.sort\((.*)\))?",
            block.strip(),
            re.DOTALL,
        )
        assert call is not None, block
        stages = parsed(call[2])
        if call[1] == "find":
            stages = [stages, parsed(call[3] or "{}")]
        found.append((call[1], stages))
    return found


@pytest.fixture
def calls() -> list[Execution]:
    """Calls of some tools, half of them after `SINCE`; in the page's names."""
    made = []
    for number, each in enumerate(islice(history.executions(400, tool_count=6), 400)):
        tool = {"serverName": "rag-server", "toolName": "rag_query"} if number % 3 == 0 else {}
        at = SINCE + timedelta(minutes=number - 200)
        call = {**each, **tool, "timestamp": at.isoformat(), "sessionId": f"s-{number % 9}"}
        call.pop("inputSchema", None)
        made.append(Execution.model_validate(call))
    return made


@pytest.fixture
async def collection(
    tmp_path: Path, calls: list[Execution]
) -> AsyncIterator[AsyncCollection[Record]]:
    """The log of these calls."""
    options = await mongo_options(tmp_path)
    events = [
        execution_event(WORKSPACE, each, content_hash="h", schema_hash=None, input_schema=None)
        for each in calls
    ]
    async with closing(await open_mongo(tmp_path)) as store:
        assert await store.events.append(WORKSPACE, events) == ["accepted"] * len(calls)
    async with AsyncMongoClient[Record](options.uri) as client:
        yield client[options.database][LOG]


async def asked(collection: AsyncCollection[Record], kind: str, stages: list[Record]) -> Any:
    """What the database answers."""
    if kind == "find":
        return await collection.find(stages[0]).sort(stages[1] or {"_id": 1}).to_list()
    return await (await collection.aggregate(stages, allowDiskUse=True)).to_list()


async def test_the_five_queries_answer_what_the_calls_say(
    collection: AsyncCollection[Record], calls: list[Execution]
) -> None:
    """Counted again from the calls that were recorded."""
    failures, durations, session, over, errors = [
        await asked(collection, *query) for query in queries()
    ]
    late = [each for each in calls if each.timestamp >= SINCE]
    assert len(late) == 200

    wanted: dict[str, int] = {}
    for each in late:
        if each.outcome == "failure":
            name = f"{each.server_name}/{each.tool_name}"
            wanted[name] = wanted.get(name, 0) + 1
    assert {each["_id"]: each["failures"] for each in failures} == wanted
    assert [each["failures"] for each in failures] == sorted(wanted.values(), reverse=True)

    by_agent: dict[str, list[float]] = {}
    for each in late:
        by_agent.setdefault(each.agent, []).append(each.duration_ms)
    assert {each["_id"]: each["calls"] for each in durations} == {
        agent: len(each) for agent, each in by_agent.items()
    }
    for each in durations:
        known = sorted(by_agent[each["_id"]])
        assert each["p95"] == known[int(0.95 * (len(known) - 1))]

    assert [each["executionId"] for each in session] == [
        each.execution_id for each in calls if each.session_id == "s-1"
    ]
    of_tool = [each for each in calls if each.tool_name == "rag_query"]
    assert {each["executionId"] for each in over} >= {
        each.execution_id
        for each in of_tool
        if isinstance(top := each.parameters.get("topK"), int | float) and top > 10
    }
    said = [each.error.message for each in of_tool if each.error is not None]
    assert {each["_id"]: each["times"] for each in errors} == {
        message: said.count(message) for message in said
    }


def fields_used(which: Record, sort: list[str], index: list[str]) -> int:
    """How many fields of an index narrow a search: those of one value, then a range.

    0 where the index does not give the order.
    """
    ranges = {name for name, each in which.items() if isinstance(each, dict) and "$in" not in each}
    equal = list(takewhile(lambda name: name in which and name not in ranges, index))
    rest = index[len(equal) :]
    if sort and rest[: len(sort)] != sort:
        return 0
    return len(equal) + (1 if rest and rest[0] in ranges else 0)


async def test_each_of_them_is_served_by_an_index(collection: AsyncCollection[Record]) -> None:
    """By three fields at least, of which the first is the workspace; a real server says so too."""
    found = queries()
    assert len(found) == 5
    for kind, stages in found:
        which = stages[0] if kind == "find" else stages[0]["$match"]
        sort = list(stages[1]) if kind == "find" else []
        best = max(fields_used(which, sort, list(index.document["key"])) for index in INDEXES[LOG])
        assert best >= 3, which
        if given_uri():
            command = (
                {"find": LOG, "filter": which, "sort": stages[1]}
                if kind == "find"
                else {"aggregate": LOG, "pipeline": stages, "cursor": {}}
            )
            try:
                plan = await collection.database.command("explain", command)
            except OperationFailure as error:
                if error.code in UNKNOWN:
                    pytest.skip(f"the server explains no {kind} ({error.code})")
                raise
            assert "COLLSCAN" not in repr(plan), which
