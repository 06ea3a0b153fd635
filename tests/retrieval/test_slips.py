"""What models slip into values, and what context or value settle where schema and error do not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.retrieval.cases import answer_to, make_case, object_schema

Call = dict[str, Any]
EDIT = object_schema(path="string", old_str="string", new_str="string")
SQL = object_schema(sql="string")
ENDS = object_schema(check_in="string", check_out="string")
PLACE = object_schema(lat="number", lon="number")
SAYS = {"type": "array", "items": object_schema(role="string", content="string")}


def _text(description: str = "", **more: Any) -> Call:
    return {"type": "string", "description": description, **more}


READS: list[tuple[Call, Call, str, str, Call]] = [
    (EDIT, {"path": "a", "old_str": "  41\tx = 1\n  42\ty", "new_str": "  41\tx = 2\n  42\ty"},
     "old_str `  41\tx = 1\n  42\ty` did not appear verbatim in a", "",
     {"path": "a", "old_str": "x = 1\ny", "new_str": "x = 2\ny"}),
    (object_schema(["command"], command="string", timeout="integer"),
     {"command": 'ls</parameter>\n<parameter name="timeout">120'}, "command: syntax error", "",
     {"command": "ls", "timeout": 120}),
    (object_schema(city="string", days="integer"),
     {"city": {"type": "string", "value": "Bergen"}, "days": {"type": "integer", "value": 3}},
     "data/city must be string, data/days must be integer", "", {"city": "Bergen", "days": 3}),
    (SQL, {"sql": "SELECT a FROM t WHERE n &gt; 5"}, "invalid sql", "",
     {"sql": "SELECT a FROM t WHERE n > 5"}),
    (SQL, {"sql": "SELECT createdAt FROM t"}, 'column "createdat" does not exist\n'
     'HINT: Perhaps you meant to reference the column "t.createdAt".', "",
     {"sql": 'SELECT "createdAt" FROM t'}),
    (SQL, {"sql": "SELECT user_name FROM a"}, 'column "user_name" does not exist\n'
     'HINT: Perhaps you meant to reference the column "a.username".', "",
     {"sql": "SELECT username FROM a"}),
    (object_schema(["path"], path="string", head=_text("first lines"), tail=_text("last lines")),
     {"path": "a", "head": "4", "tail": "4"}, "Cannot specify both head and tail", "the last lines",
     {"path": "a", "tail": "4"}),
    (object_schema([], depart="string", back="string"),
     {"depart": "2024-02-12", "back": "2024-02-19"}, "depart: 2024-02-12 is in the past",
     "Today is 20 Jan 2026", {"depart": "2026-02-12", "back": "2026-02-19"}),
    (PLACE, {"lat": 139.6, "lon": 35.4}, "lat out of range", "", {"lat": 35.4, "lon": 139.6}),
    (ENDS, {"check_in": "2026-10-20", "check_out": "2026-10-17"},
     "check_out must be later than check_in", "",
     {"check_in": "2026-10-17", "check_out": "2026-10-20"}),
    (object_schema(priority={"type": "number", "description": "0 = none, 1 = Urgent, 2 = High"}),
     {"priority": "High"}, "priority: expected number", "", {"priority": 2}),
    (object_schema(amount={"type": "integer", "description": "The amount in cents"}),
     {"amount": 19.99}, "amount must be an integer", "", {"amount": 1999}),
    (object_schema(channel="string"), {"channel": 1187654321098765300}, "channel must be a string",
     "post to 1187654321098765313", {"channel": "1187654321098765313"}),
    (object_schema(id="string"), {"id": "7d1e4f31-98aa-..."}, "invalid id",
     "delete 7d1e4f31-98aa-41d0-b6f4-6a5b20e9c1d8", {"id": "7d1e4f31-98aa-41d0-b6f4-6a5b20e9c1d8"}),
    (object_schema(matter=_text("Number, e.g. 2025-LIT-0381")), {"matter": "{{matter}}"},
     "matter not found: '{{matter}}'", "In 2026-LIT-0044", {"matter": "2026-LIT-0044"}),
    (object_schema(due=_text("yyyy-MM-dd")), {}, "missing: due", "payable by 31 July 2026",
     {"due": "2026-07-31"}),
    (object_schema(id=_text("e.g. gid://shop/Product/1234567890")), {"id": "8423071940"},
     "invalid id", "", {"id": "gid://shop/Product/8423071940"}),
    (object_schema(node=_text(pattern=r"^\d+:\d+$")), {"node": "1042-3381"}, "invalid node", "",
     {"node": "1042:3381"}),
    (object_schema(zip=_text(pattern=r"^\d{5}$")), {"zip": 2138}, "zip must be a string", "",
     {"zip": "02138"}),
    (object_schema(url=_text(format="uri")), {"url": "docs.example.org/uv/"}, "invalid url", "",
     {"url": "https://docs.example.org/uv/"}),
    (object_schema(views="string", include_views="boolean"), {"views": "a", "exclude_views": True},
     "Parameter 'exclude_views' was removed, see 'include_views'", "",
     {"views": "a", "include_views": False}),
    (object_schema(messages=SAYS), {"messages": "Which one?"}, "messages must be an array", "",
     {"messages": [{"role": "user", "content": "Which one?"}]}),
    (object_schema(base="string", fields="object"), {"base": "b", "Name": "Ada", "Stage": "Lead"},
     "missing: fields", "", {"base": "b", "fields": {"Name": "Ada", "Stage": "Lead"}}),
    (object_schema(at=_text("24-hour time (HH:MM)"), to=_text("zone, e.g. 'Asia/Tokyo'")),
     {"at": "3:30 PM", "to": "Tokyo"}, "invalid zone: no time zone found with key Tokyo", "",
     {"at": "15:30", "to": "Asia/Tokyo"}),
    (object_schema(post={"type": "string", "enum": ["GK", "DF", "MF"]}), {"post": "goalkeeper"},
     "post: not listed", "", {"post": "GK"}),
    (object_schema(since={"type": "integer", "description": "seconds since 1970"}),
     {"since": 1760428800000}, "since (1760428800000) is out of range", "", {"since": 1760428800}),
    (object_schema(dose=object_schema(value="number", unit=_text(enum=["M", "mM"]))),
     {"dose": "5 mM"}, "dose must be an object", "", {"dose": {"value": 5, "unit": "mM"}}),
    (object_schema(key=_text(pattern="^[a-zA-Z0-9]+$")),
     {"key": "https://a.example/design/k9ZtQe4hWmP2uLx7/Checkout-v3"}, "invalid key", "",
     {"key": "k9ZtQe4hWmP2uLx7"}),
    (object_schema(query="string", count="number"), {"query": "q", "count": 50},
     '422 {"error": {"detail": "cannot validate", "meta": {"errors": [{"type": "less_than_equal",'
     ' "loc": ["query", "count"], "msg": "Input should be less than or equal to 20"}]}}}', "",
     {"query": "q", "count": 20}),
    (object_schema(job=object_schema(of=object_schema(
        id="string", type={"type": "string", "enum": ["ref"]}))), {"job": {"of": "PX7"}},
     "job.of: expected object", "", {"job": {"of": {"id": "PX7", "type": "ref"}}}),
    (object_schema(files={"type": "array", "items": {"type": "string"}}),
     {"files": "index.html css/main.css"}, "files must be an array", "",
     {"files": ["index.html", "css/main.css"]}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "sent", "message", "context", "meant"), READS)
def test_a_slip_is_mended(
    schema: Call, sent: Call, message: str, context: str, meant: Call
) -> None:
    """First of all that is proposed."""
    case = replace(make_case(sent, message, schema=schema), context=context or None)
    [first, *_] = answer_to(case, message).response.suggestions
    assert first.corrected_parameters == meant


LEFT: list[tuple[Call, Call, str, str]] = [
    (object_schema(channel="string"), {"channel": 1187654321098765300}, "channel must be a string",
     ""),
    (object_schema(cover={"type": "string", "enum": ["BASIC", "PLUS", "FULL"]}),
     {"cover": "Full cover"}, "cover: must be any of BASIC, PLUS, FULL", "upgrade to PLUS"),
    (object_schema(["path"], path="string", head="string", tail="string"),
     {"path": "a", "head": "4", "tail": "4"}, "Cannot specify both head and tail", ""),
    (object_schema(["intent"], intent="string"), {"customer": "cus_Q8rLw1nY"}, "missing: intent",
     ""),
    (object_schema(depart="string"), {"depart": "12/02/2024"}, "depart is in the past", "in 2026"),
    (ENDS, {"check_in": "2026-10-17", "check_out": "2026-10-20"},
     "check_out must be later than check_in", ""),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "sent", "message", "context"), LEFT)
def test_what_nothing_settles_is_not_sure(
    schema: Call, sent: Call, message: str, context: str
) -> None:
    """Digits that are lost, what the context says otherwise, either of two."""
    case = replace(make_case(sent, message, schema=schema), context=context or None)
    found = answer_to(case, message).response.suggestions
    assert all(each.confidence <= 0.8 for each in found)
