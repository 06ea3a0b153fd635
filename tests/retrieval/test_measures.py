"""Amounts in the tool's unit, codes of what is named, and calls whose second fault shows later."""

from typing import Any

import pytest

from aftercall.models import ExecutionError
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.values.measures import codes_of, measure_text, span_forms
from tests.retrieval.cases import answer_to, make_case, object_schema

Call = dict[str, Any]


@pytest.mark.parametrize(
    ("text", "name", "described_by", "amount"),
    [
        ("2.4 kg", "weight_grams", [], 2400), ("15%", "percent_off", [], 15),
        ("21.5\u00b0C", "temperature", ["celsius"], 21.5), ("8GB", "memoryMb", [], 8192),
        ("5m", "ttl", ["second"], 300), ("2h", "durationMinutes", [], 120), ("1.2x", "speed", [],
        1.2), ("1h 30m", "timeout_ms", [], 5_400_000), ("1:30", "duration_seconds", [], 90),
        ("450k", "maxPrice", [], 450_000), ("48213,5", "reading", [], 48213.5),
        ("1,500", "price", [], None), ("5 m", "duration", [], None),
        ("5 kg", "seconds", [], None), ("soon", "ttl_s", [], None),
        ("3 m", "width_px", [], None), ("", "seconds", [], None),
    ],
)  # fmt: skip
def test_an_amount_is_told_in_the_unit_that_is_named(
    text: str, name: str, described_by: list[str], amount: float | None
) -> None:
    """By the name or else the description; not where either side names none."""
    assert measure_text(text, name, described_by) == amount


def test_what_is_named_has_its_codes() -> None:
    """Countries, languages and states in all forms; a span of time in those of programs."""
    assert codes_of("Germany") == ["DE", "DEU"]
    assert "pt-BR" in codes_of("Portuguese (Brazil)")
    assert codes_of("Brazilian Portuguese") == codes_of("Portuguese (Brazil)")
    assert codes_of("California") == ["CA"]
    assert codes_of("Atlantis") == []
    assert list(span_forms("90 minutes")) == ["PT1H30M", "1h 30m", "90m", "5400s", "01:30:00"]
    assert list(span_forms("later")) == []


def _listed(*values: str) -> Call:
    return {"type": "string", "enum": list(values)}


MOMENT = {"type": "object", "properties": {
    "dateTime": {"type": "string", "format": "date-time"}, "timeZone": {"type": "string"},
}}  # fmt: skip
ROW = object_schema(["id", "fields"], id="string", fields={"type": "object"})
TEN = "2026-05-04T10:00:00"
READS: list[tuple[Call, Call, str, Call]] = [
    (object_schema(lang=_listed("de", "pt-BR")), {"lang": "Brazilian Portuguese"}, "bad lang",
     {"lang": "pt-BR"}),
    (object_schema(level=_listed("LEVEL_LOW", "LEVEL_HIGH")), {"level": "high"}, "bad level",
     {"level": "LEVEL_HIGH"}),
    (object_schema(weight_grams="integer"), {"weight_grams": "2.4 kg"},
     "weight_grams must be an integer", {"weight_grams": 2400}),
    (object_schema(durationMinutes="integer"), {"duration": "2h"}, "unknown field duration",
     {"durationMinutes": 120}),
    (object_schema(startMs="integer"), {"startMs": "2026-05-04T10:00:00Z"},
     "startMs must be an integer", {"startMs": 1777888800000}),
    (object_schema(ticket="integer"), {"ticket": "https://a.example/tickets/4821"},
     "ticket must be an integer", {"ticket": 4821}),
    (object_schema(since={"type": "string", "pattern": r"^PT(\d+H)?(\d+M)?$"}), {"since": "15m"},
     "invalid since", {"since": "PT15M"}),
    (object_schema(origin={"type": "string", "pattern": "^[A-Z]{3}$"}), {"origin": "Zurich (ZRH)"},
     "invalid origin", {"origin": "ZRH"}),
    (object_schema(page_id={"type": "string", "format": "uuid"}),
     {"page_id": "https://a.example/Plan-1e5c8a347d0b4a8f9a512c7e6f0b9d13"}, "invalid page_id",
     {"page_id": "1e5c8a34-7d0b-4a8f-9a51-2c7e6f0b9d13"}),
    (object_schema(sets={"type": "array", "items": _listed("open", "done")}),
     {"sets": '["Open", "Done"]'}, "sets must be an array", {"sets": ["open", "done"]}),
    (object_schema(owner="string", repo="string"), {"repo": "acme/web"}, "missing: owner",
     {"owner": "acme", "repo": "web"}),
    (object_schema(["prompt", "width", "height"], prompt="string", width="integer",
                   height="integer"),
     {"prompt": "a", "size": "640x480"}, "unknown field size",
     {"prompt": "a", "width": 640, "height": 480}),
    (object_schema(at=object_schema(lat="number", lng="number")), {"at": "47.37,8.54"},
     "at must be an object", {"at": {"lat": 47.37, "lng": 8.54}}),
    (object_schema(sources={"type": "array", "items": object_schema(type="string")}),
     {"sources": ["web", "news"]}, "sources: expected object",
     {"sources": [{"type": "web"}, {"type": "news"}]}),
    (object_schema(tags={"type": "array", "items": object_schema(key="string", value="string")}),
     {"tags": ["team=a", "tier=b"]}, "tags: expected object",
     {"tags": [{"key": "team", "value": "a"}, {"key": "tier", "value": "b"}]}),
    (object_schema(people={"type": "array", "items": object_schema(name="string", age="integer")}),
     {"people": {"Ada": {"age": 36}, "Kim": {"age": 41}}}, "people must be an array",
     {"people": [{"name": "Ada", "age": 36}, {"name": "Kim", "age": 41}]}),
    (object_schema(sort={"type": "array", "items": object_schema(
        ["field"], field="string", direction=_listed("asc", "desc"))}),
     {"sort": {"due": "desc"}}, "sort must be an array",
     {"sort": [{"field": "due", "direction": "desc"}]}),
    (object_schema(start=MOMENT, end=MOMENT), {"start": TEN, "end": TEN, "timeZone": "Europe/Rome"},
     "invalid start",
     {"start": {"dateTime": TEN, "timeZone": "Europe/Rome"},
      "end": {"dateTime": TEN, "timeZone": "Europe/Rome"}}),
    (object_schema(start="string", timeZone="string"),
     {"start": {"dateTime": TEN, "timeZone": "Europe/Rome"}}, "start must be a string",
     {"start": TEN, "timeZone": "Europe/Rome"}),
    (object_schema(rows={"type": "array", "items": ROW}), {"rows": [{"id": "a", "Due": "today"}]},
     "rows: missing fields", {"rows": [{"id": "a", "fields": {"Due": "today"}}]}),
    (object_schema(filter="object"), {"filter": "{'paid': False, 'at': None}"},
     "filter must be an object", {"filter": {"paid": False, "at": None}}),
    (object_schema(places={"type": "array", "items": {"type": "string"}}),
     {"places": "Graz, Austria|Bern, Switzerland"}, "places must be an array",
     {"places": ["Graz, Austria", "Bern, Switzerland"]}),
    (object_schema(["job"], job="string", tail={"type": "integer", "description": "last n lines"}),
     {"job": "7", "lines": 20}, "unknown field lines", {"job": "7", "tail": 20}),
    (object_schema(channel_id="string", thread="string", text="string"),
     {"channel": "C1", "thread": "T", "message": "Hi"},
     "Missing required arguments: channel_id, thread, and text",
     {"channel_id": "C1", "thread": "T", "text": "Hi"}),
    (object_schema(started="string"), {"started": "2026-05-04 10:00 UTC"},
     '{"errors": {"started": "Invalid date format: yyyy-MM-dd\'T\'HH:mm:ss.SSSZ"}}',
     {"started": "2026-05-04T10:00:00.000+0000"}),
    (object_schema(step=_listed("PT15M", "PT1H")), {"step": "15min"}, "invalid step",
     {"step": "PT15M"}),
    (object_schema(month={"type": "string", "pattern": r"^\d{4}-\d\d$"}), {"month": "March 2026"},
     "invalid month", {"month": "2026-03"}),
    (object_schema(loss=object_schema(amount="number", currency="string")), {"loss": "1200 EUR"},
     "loss must be an object", {"loss": {"amount": 1200, "currency": "EUR"}}),
    (object_schema(gear=object_schema([], screen="boolean", board="boolean")),
     {"gear": ["screen", "board"]}, "gear must be an object",
     {"gear": {"screen": True, "board": True}}),
    (object_schema(env="object"), {"env": ["TZ=Europe/Rome", "MODE=fast"]},
     "env must be an object", {"env": {"TZ": "Europe/Rome", "MODE": "fast"}}),
    (object_schema(cells={"type": "array", "items": {"type": "array"}}), {"cells": ["a", "b"]},
     "cells.0: expected list", {"cells": [["a", "b"]]}),
    (object_schema(files={"type": "array", "items": {"type": "string"}}),
     {"files": "src/a.py tests/b.py"}, "files must be an array",
     {"files": ["src/a.py", "tests/b.py"]}),
    (object_schema(sort={"type": "array", "items": object_schema(
        ["field"], field="string", direction=_listed("asc", "desc"))}),
     {"sort": "due desc, name asc"}, "sort must be an array",
     {"sort": [{"field": "due", "direction": "desc"}, {"field": "name", "direction": "asc"}]}),
    (object_schema(filters={"type": "array", "items": object_schema(
        name="string", values={"type": "array", "items": {"type": "string"}})}),
     {"filters": {"team": "a"}}, "filters must be an array",
     {"filters": [{"name": "team", "values": ["a"]}]}),
    (object_schema(["q"], q="string", yearFrom="integer", yearTo="integer"),
     {"q": "a", "years": "2019-2024"}, "unknown field years",
     {"q": "a", "yearFrom": 2019, "yearTo": 2024}),
    (object_schema(rate={"type": "number", "maximum": 0.25}), {"rate": 3.8},
     "3.8 is greater than the maximum of 0.25", {"rate": 0.038}),
    (object_schema(sql="string"), {"sql": "SELECT o.custmer_id FROM orders o"},
     'column o.custmer_id does not exist\nHINT:  Perhaps you meant to reference the column '
     '"o.customer_id".', {"sql": "SELECT o.customer_id FROM orders o"}),
    (object_schema(how=_listed("get", "get_labels", "list")), {"how": "GET_LABELS"}, "bad how",
     {"how": "get_labels"}),
    (object_schema(tags={"type": "array", "items": object_schema(key="string", value="string")}),
     {"tags": '[{"key": "team", "value": "a"}]'}, "tags must be an array",
     {"tags": [{"key": "team", "value": "a"}]}),
    (object_schema(path="string"), {"path": "src/a.py"}, "Access denied - path outside allowed "
     "directories: /opt/mcp/src/a.py not in /home/dev/shop", {"path": "/home/dev/shop/src/a.py"}),
    (object_schema(sql="string"), {"sql": "```sql\nSELECT 1\n```"}, "syntax error near ```",
     {"sql": "SELECT 1"}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "sent", "message", "right"), READS)
def test_what_the_schema_lets_know_is_mended(
    schema: Call, sent: Call, message: str, right: Call
) -> None:
    """Also where one mend shows the next fault: an error names the first."""
    case = make_case(sent, message, schema=schema | {"additionalProperties": False})
    found = answer_to(case, message).response.suggestions
    assert [each.corrected_parameters for each in found[:1]] == [right]


@pytest.mark.parametrize(
    ("schema", "sent", "message"),
    [
        (object_schema(priority=_listed("low", "medium", "high")), {"priority": "medium-high"},
         "bad priority"),
        (object_schema(at={"type": "string", "format": "date-time", "description":
                           "RFC 3339 with offset"}), {"at": "2026-05-04 10:00"}, "invalid at"),
        (object_schema(length="integer"), {"length": "5 m"}, "length must be an integer"),
        (object_schema(latitude="number", longitude="number"), {"at": [16.37, 48.2]},
         "unknown field at"),
        (object_schema(org={"type": "string", "pattern": "^[a-z0-9-]+$"}),
         {"org": "https://acme.example.org"}, "invalid org"),
    ],
)  # fmt: skip
def test_what_could_be_either_is_left_alone(schema: Call, sent: Call, message: str) -> None:
    """A value between two, a time without its zone, an amount without a unit, two orders."""
    assert answer_to(make_case(sent, message, schema=schema), message).response.suggestions == []


@pytest.mark.parametrize(
    ("schema", "sent", "message"),
    [
        (object_schema(n="number"), {"n": "9" * 400 + "x"}, "n must be a number"),
        (object_schema(seconds="integer"), {"seconds": "9" * 40 + " h"}, "seconds must be integer"),
        (object_schema(at=object_schema(a={"type": ["number", "null"]}, b="number")),
         {"at": "007,08"}, "at must be an object"),
        (object_schema(cost=object_schema(amount="number", currency="string")),
         {"cost": "007 EUR"}, "cost must be an object"),
        (object_schema(sql="string"), {"sql": "SELECT o.custmer_id FROM orders o"},
         'column o.custmer_id does not exist\nHINT:  Perhaps you meant to reference the column '
         '"o.customer_id\\\\9\\\\g<x>".'),
    ],
)  # fmt: skip
def test_no_value_and_no_error_breaks_the_answer(schema: Call, sent: Call, message: str) -> None:
    """Numbers beyond all bounds, zeros before them, types in lists, a hostile hint."""
    found = answer_to(make_case(sent, message, schema=schema), message).response.suggestions
    assert all(0 <= each.confidence <= 1 and each.corrected_parameters for each in found)


def test_what_leaves_a_value_that_is_shown_to_be_wrong_is_not_sure() -> None:
    """A second fault without a mend: the limit alone is not what was asked for."""
    message = 'unknown value "canceled" for enum OrderStatus; size must be in [1, 500]'
    found = answer_to(make_case({"status": "canceled", "size": 1000}, message), message)
    assert [each.confidence <= 0.8 for each in found.response.suggestions[:1]] == [True]


@pytest.mark.parametrize(
    ("message", "sent", "path", "said"),
    [
        ('validating root: validating /properties/n: type: 5 has type "string", want "number"',
         {"n": "5"}, ("n",), {"kind": "wrong_type", "expected_types": ("number",)}),
        ("validating /properties/to: enum: up does not equal any of: [ASC DESC]", {"to": "up"},
         ("to",), {"kind": "not_allowed", "allowed": ("ASC", "DESC")}),
        ('validating root: required: missing properties: ["number"]', {}, ("number",),
         {"kind": "missing"}),
        ("validating /properties/n: maximum: 500 is greater than 100", {"n": 500}, ("n",),
         {"maximum": 100}),
        ("json: cannot unmarshal string into Go struct field Run.paths of type []string",
         {"paths": "a"}, ("paths",), {"expected_types": ("array",)}),
        ("parameter ids could not be coerced to []string, is string", {"ids": "a"}, ("ids",),
         {"expected_types": ("array",)}),
        ("data must NOT have additional properties (more)", {"more": 1}, ("more",),
         {"kind": "unexpected"}),
        ("expected int for dictionary value @ data['level']", {"level": "a"}, ("level",),
         {"expected_types": ("integer",)}),
        ('{"message": ["property file should not exist", "n must be one of the following values: '
         'a, b"], "statusCode": 400}', {"file": 1, "n": "c"}, ("n",), {"allowed": ("a", "b")}),
        ('{"errors": {"$.page": ["The JSON value could not be converted to System.Int32."]}}',
         {"page": "2"}, ("page",), {"expected_types": ("integer",)}),
        ("code must match /^[a-z]{2}$/ regular expression", {"code": "German"}, ("code",),
         {"kind": "bad_format", "expected_format": "^[a-z]{2}$"}),
        ("Required request parameter 'from' for method parameter type LocalDate is not present",
         {"start": 1}, ("from",), {"kind": "missing"}),
        ('"to.country" length must be 2 characters long', {"to": {"country": "Germany"}},
         ("to", "country"), {"maximum": 2, "of_length": True}),
        ("[Field error in object 'order' on field 'to.country': rejected value [France]; default "
         "message [size must be between 2 and 2]]", {"to": {"country": "France"}},
         ("to", "country"), {"maximum": 2}),
        ("path.page_id should be a valid uuid", {"page_id": "x"}, ("page_id",),
         {"kind": "bad_format"}),
    ],
)  # fmt: skip
def test_the_words_of_other_validators_are_read(
    message: str, sent: Call, path: tuple[str, ...], said: Call
) -> None:
    """Go, .NET, NestJS, joi, voluptuous, Spring."""
    found = {each.path: each for each in read_error(ExecutionError(message=message), sent).faults}
    assert {name: getattr(found[path], name) for name in said} == said
