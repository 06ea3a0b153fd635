"""Calls as models get them wrong, whole: what is proposed first, or that nothing sure is."""

from functools import partial
from typing import Any

import pytest

from aftercall.models import FailedCall
from retrieval.answers.proposers.faults import read_by_schema, refused_by
from retrieval.knowledge.reading.reader import read_error
from tests.retrieval.cases import answer_to, make_case, object_schema

CLOSED = {"additionalProperties": False}
PERIOD = object_schema(["city"], city="string", start_date="string", end_date="string") | CLOSED
PLACE = object_schema(owner="string", repo="string") | CLOSED
TASK = object_schema(
    ["title"],
    title="string",
    state={"type": "string", "enum": ["open", "closed", "in_progress"]},
    labels={"type": "array", "items": {"type": "string"}},
    due={"type": "string", "format": "date"},
    count="integer",
    note="string",
) | CLOSED  # fmt: skip
TITLE = {"title": "Paint it"}
HERE = {"owner": "acme", "repo": "web"}


@pytest.mark.parametrize(
    ("parameters", "message", "schema", "right"),
    [
        ({"command": "find --owner acme --repo web"}, "missing: owner", PLACE, HERE),
        ({"args": ["--owner=acme", "--repo=web"]}, "missing: owner", PLACE, HERE),
        ({"argv": ["owner=acme", "repo=web"]}, "missing: owner", PLACE, HERE),
        ({"x": '```json\n{"owner": "acme", "repo": "web"}\n```'}, "missing: owner", PLACE, HERE),
        ({"body": "<owner>acme</owner><repo>web</repo>"}, "missing: owner", PLACE, HERE),
        ({"body": "owner: acme\nrepo: web"}, "missing: owner", PLACE, HERE),
        ({"url": "/find?owner=acme&repo=web"}, "missing: owner", PLACE, HERE),
        ({"params": '"{\\"owner\\": \\"acme\\", \\"repo\\": \\"web\\"}"'}, "missing: owner", PLACE,
         HERE),
        ({"arg0": "acme", "arg1": "web"}, "missing: owner", PLACE, HERE),
        ({"repository": "acme/web"}, "'owner' is required", PLACE, HERE),
        ({"ids": HERE, "owner": ""}, "unknown field ids", PLACE, HERE),
        ({"city": "Rome", "date_range": "2026-01-01..2026-01-05"}, "unknown field date_range",
         PERIOD, {"city": "Rome", "start_date": "2026-01-01", "end_date": "2026-01-05"}),
        ({"x": "acme", "repo": "web"}, "'x' is no longer supported, please pass 'owner'", PLACE,
         HERE),
        ({"x": "acme", "repo": "web"}, "Der Parameter 'x' heißt jetzt 'owner'.", PLACE, HERE),
        (TITLE | {"state": "State.IN_PROGRESS"}, "invalid state", TASK,
         TITLE | {"state": "in_progress"}),
        (TITLE | {"state": "colsd"}, "invalid state", TASK, TITLE | {"state": "closed"}),
        (TITLE | {"labels": "- red\n- dark blue"}, "labels must be an array", TASK,
         TITLE | {"labels": ["red", "dark blue"]}),
        (TITLE | {"due": "4 de abril de 2026"}, "invalid due: expected YYYY-MM-DD", TASK,
         TITLE | {"due": "2026-04-04"}),
        (TITLE | {"due": "2026年5月3日"}, "invalid due: expected YYYY-MM-DD", TASK,
         TITLE | {"due": "2026-05-03"}),
        (TITLE | {"count": "N/A", "note": "N/A"}, "count must be an integer", TASK, TITLE),
        (TITLE | {"progress": "open"}, "unknown field progress", TASK, TITLE | {"state": "open"}),
        (TITLE | {"open": True}, "unknown field open", TASK, TITLE | {"state": "open"}),
        (TITLE | {"count": {"eq": 2}}, "count must be an integer", TASK, TITLE | {"count": 2}),
        (TITLE | {"count": "2 (as asked)"}, "count must be an integer", TASK, TITLE | {"count": 2}),
        (TITLE | {"due": "1767225600"}, "invalid due: expected YYYY-MM-DD", TASK,
         TITLE | {"due": "2026-01-01"}),
        (HERE | {"owner": {"type": "text", "text": "acme"}}, "owner must be a string", PLACE, HERE),
        (HERE | {"repo": "web\u200b"}, "repo not found", PLACE, HERE),
        (HERE | {"owner": "@acme"}, "owner not found", PLACE, HERE),
        (HERE | {"repository": "web"}, "unknown field repository", PLACE, HERE),
        ({"$.owner": "acme", "$.repo": "web"}, "missing: owner", PLACE, HERE),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
          "params": {"name": "find", "arguments": HERE}}, "missing: owner", PLACE, HERE),
        ({"calls": [{"tool": "find", "args": HERE}]}, "missing: owner", PLACE, HERE),
        ({"entries": [["owner", "acme"], ["repo", "web"]]}, "missing: owner", PLACE, HERE),
        ({"fields": [{"owner": "acme"}, {"repo": "web"}]}, "missing: owner", PLACE, HERE),
        ({"patch": [{"op": "add", "path": "/owner", "value": "acme"},
                    {"op": "add", "path": "/repo", "value": "web"}]}, "missing: owner", PLACE,
         HERE),
        ({"code": "print(find(owner='acme', repo='web'))"}, "missing: owner", PLACE, HERE),
        ({"code": 'await api.find({owner: "acme", repo: "web"});'}, "missing: owner", PLACE, HERE),
        ({"input": "{'owner': 'acme', 'repo': 'web'}"}, "missing: owner", PLACE, HERE),
        ({"input": '{"owner": "acme", // whose\n "repo": "web",}'}, "missing: owner", PLACE, HERE),
        # Each name goes to the one it is like, not to the other.
        ({"target_tz": "Asia/Tokyo", "time": "12:00", "source_tz": "Europe/Berlin"},
         "2 validation errors for x\nsource_timezone\n  Field required [type=missing]\n"
         "target_timezone\n  Field required [type=missing]",
         object_schema(source_timezone="string", time="string", target_timezone="string"),
         {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        (TITLE | {"count": "five"}, "1 validation error for x\ncount\n  Input should be a valid "
         "integer [type=int_parsing]", TASK, TITLE | {"count": 5}),
        (TITLE | {"labels": "red"}, "1 validation error for x\nlabels\n  Input should be a valid "
         "list [type=list_type]", TASK, TITLE | {"labels": ["red"]}),
        ({"branch_type": "locals"}, "Invalid branch type: locals", object_schema(branch_type=
         {"type": "string", "description": "'local' or 'remote'"}), {"branch_type": "local"}),
        # Two numbers lie beyond 10, and the schema says which of them may not.
        ({"page": 50, "top": 50}, "50 is greater than the maximum of 10", object_schema(
         top={"type": "integer", "maximum": 10}, page="integer"), {"page": 50, "top": 10}),
        # What the schema refuses is mended with what the error tells; all else is the caller's.
        ({"Owner": "acme", "repo": "`web`"}, "unexpected argument 'Owner'", PLACE,
         HERE | {"repo": "`web`"}),
        ({"name_of_it": "x", "state": "OPEN"} | TITLE, "unexpected argument 'name_of_it'", TASK,
         TITLE | {"state": "open"}),
        ({"arguments": {"owner_name": "acme", "repo": "web"}}, "unexpected argument 'arguments'",
         PLACE, HERE),
        (TITLE | {"count": "one thousand two hundred and five"}, "count must be an integer", TASK,
         TITLE | {"count": 1205}),
        (TITLE | {"labels": "red, blue and green"}, "labels must be an array", TASK,
         TITLE | {"labels": ["red", "blue", "green"]}),
        (TITLE | {"count": {"value": "2"}}, "count must be an integer", TASK, TITLE | {"count": 2}),
        (TITLE | {"count": -2}, "count must be at least 0", TASK, TITLE | {"count": 2}),
        ({"Owner": "acme", "why": "It was red."}, "unknown field Owner",
         object_schema(owner="string", why="string") | CLOSED,
         {"owner": "acme", "why": "It was red."}),
        ({"owner": '@"acme"', "repo": "web"}, "owner not found", PLACE, HERE),
        ({"per": {"page": 5}}, "unknown field per", object_schema([], perPage="integer",
         page="integer") | CLOSED, {"perPage": 5}),
        ({"o": "acme", "rn": "web"}, "unknown field rn", object_schema(owner="string",
         repo_name="string") | CLOSED, {"owner": "acme", "repo_name": "web"}),
        (TITLE | {"state": "in_pro"}, "invalid state", TASK, TITLE | {"state": "in_progress"}),
        (TITLE | {"labels": "{red,blue}"}, "labels must be an array", TASK,
         TITLE | {"labels": ["red", "blue"]}),
    ],
)  # fmt: skip
def test_it_is_read_as_it_was_meant(
    parameters: dict[str, Any], message: str, schema: dict[str, Any], right: dict[str, Any]
) -> None:
    """Each of them is what is proposed first."""
    found = answer_to(make_case(parameters, message, schema=schema), message).response.suggestions
    assert found[0].corrected_parameters == right


@pytest.mark.parametrize(
    ("parameters", "message", "schema"),
    [
        ({"args": "--owner (required)=acme --repo"}, "unknown field args", PLACE),
        ({"owner": "acme", "x": "find --all it"}, "missing required parameter: repo", PLACE),
        ({"input": "<title>Paint"}, "unknown field input", TASK),
        ({"input": '```json\n{"title": "Pai'}, "unknown field input", TASK),
        (TITLE | {"state": "not open"}, "invalid state", TASK),
        (TITLE | {"state": "banana"}, "invalid state", TASK),
        (TITLE | {"note": "Paint it\n"}, "note not found", TASK),
        (TITLE | {"count": {"gt": 2}}, "count must be an integer", TASK),
        (TITLE | {"count": {"not": 2}}, "count must be an integer", TASK),
        (TITLE | {"count": "2 (miles)"}, "count must be an integer", TASK),
        ({"calls": [HERE, {"owner": "acme", "repo": "api"}]}, "unknown field calls", PLACE),
        ({"code": "find(owner=whoever(), repo='web')"}, "missing: owner", PLACE),
        ({"owner": "acme", "language": "en"}, "unknown field language", PLACE),
        ({"path_of_it": "src/app.py"}, "missing: path", object_schema(path="string",
         content="string") | CLOSED),
        (TITLE | {"value": "7"}, "unknown field value", TASK),
        ({"company_id": "7"}, "missing: sample_id", object_schema(sample_id="string") | CLOSED),
        (TITLE | {"count": {"$lt": 2}}, "count must be an integer", TASK),
        (HERE | {"repo": "<repo object at 0x7f3a2c>"}, "repo not found", PLACE),
        ({"owner__ne": "acme", "repo": "web"}, "unknown field owner__ne", PLACE),
        ({"except_owner": "acme", "repo": "web"}, "missing: owner", PLACE),
        ({"Owner": "\\boxed{acme}", "repo": "web"}, "unknown field Owner", PLACE),
        ({"Title": 'u"Paint it"'}, "unknown field Title", TASK),
        (TITLE | {"labels": 4}, "labels must be an array", TASK),
        (TITLE | {"on_behalf_of": "another-account"}, "unknown field on_behalf_of", TASK),
        (TITLE | {"undo": True}, "unknown field undo", TASK),
        (TITLE | {"labels": "all"}, "labels must be an array", TASK),
        (TITLE | {"Title": "Wash it"}, "unknown field Title", TASK),
        ({"data": "eyJvd25lciI6ICJPcGVuSGFyYm9yIn0"}, "unknown field data",
         object_schema(owner="string") | CLOSED),
    ],
)  # fmt: skip
def test_what_it_meant_is_not_said_surely(
    parameters: dict[str, Any], message: str, schema: dict[str, Any]
) -> None:
    """A command is no value, and what is like nothing listed means nothing listed."""
    found = answer_to(make_case(parameters, message, schema=schema), message).response.suggestions
    assert all(each.confidence <= 0.8 for each in found)


@pytest.mark.parametrize(
    ("message", "category"),
    [("参数错误: 缺少必填参数: owner", "invalid_parameters"), ("E_17", "invalid_parameters"),
     ("503 Service Unavailable", "unavailable")],
)  # fmt: skip
def test_the_schema_says_what_a_message_in_no_known_words_is_about(
    message: str, category: str
) -> None:
    """What the words say otherwise stays."""
    call = FailedCall.model_validate(
        {"agent": "ada", "tool_name": "find", "server_name": None, "parameters": {"repo": "web"},
         "error": {"message": message}, "input_schema": PLACE}
    )  # fmt: skip
    reading = read_by_schema(read_error(call.error, call.parameters), partial(refused_by, call))
    assert reading.category == category
