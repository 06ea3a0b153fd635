"""A third batch of mistakes, in families that nothing before them has, and in yet other voices.

What models do with schemas that they half know: other notations of a value, of a list, of a whole
call; a value in the tags or operators of another language; a parameter said twice. By a hash of its
name a third of the kinds, and of the voices, is kept for the end, and measured on other tools.
"""

import hashlib
import html
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypeVar
from urllib.parse import quote

from bench.quality import bfcl, kinds_damage, seal, voices
from bench.quality.kinds_damage import Draw, Made, Maker
from bench.quality.kinds_words import camel, snake, words_of
from bench.quality.trial import Json
from bench.quality.voices_fresh import VOICES, Voice

Sent = Callable[[Draw], Iterator[Json]]
"""What is sent instead of a right call."""
T = TypeVar("T")


def is_kept(name: str) -> bool:
    """Whether a kind or a voice is of the third that is kept."""
    return hashlib.sha256(f"fresh/{name}".encode()).digest()[0] % 3 == 0


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list) and value is not None


def with_value(draw: Draw, form: Callable[[str, Any], Sequence[Any]]) -> Iterator[Json]:
    """The call with one value in another form."""
    for name in draw.shuffled(draw.sent):
        for value in draw.shuffled(form(name, draw.sent[name])):
            if value != draw.sent[name]:
                yield draw.valued(name, value)


def with_text(draw: Draw, form: Callable[[str, str], Sequence[Any]]) -> Iterator[Json]:
    return with_value(draw, lambda name, v: form(name, v) if isinstance(v, str) and v else ())


def under(draw: Draw, value: Any, *keys: str) -> Iterator[Json]:
    """A value as the only one, under a key that the tool does not have."""
    for key in draw.shuffled(keys):
        if key not in draw.properties:
            yield {key: value}


# Names


def said_twice(draw: Draw) -> Iterator[Json]:
    """The right name, and another one for the same beside it."""
    for name in draw.shuffled(draw.sent):
        others = [*kinds_damage.synonyms(name), *kinds_damage.abbreviations(name), camel(name),
                  f"{words_of(draw.call.tool)[-1].lower()}_{name}"]  # fmt: skip
        for other in draw.shuffled(others):
            if other not in draw.properties and other not in draw.sent:
                yield {**draw.sent, other: draw.sent[name]}


def all_named(draw: Draw, *forms: str) -> Iterator[Json]:
    """All names in one of these forms."""
    for form in draw.shuffled(forms):
        yield {form.format(name): value for name, value in draw.sent.items()}


def paths_for_names(draw: Draw) -> Iterator[Json]:
    """Paths to the parameters, as JSONPath, as a pointer, as code."""
    return all_named(draw, "$.{}", "/{}", 'args["{}"]', "body[{}]", "input:{}", "#/{}")


def signature_names(draw: Draw) -> Iterator[Json]:
    """Names with their types, as signatures have them."""
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    for form in draw.shuffled(("{0}: {1}", "{1} {0}", "{0}?", "{0} ({1})", "{0}:{1}")):
        yield {form.format(n, kinds.get(type(v), "object")): v for n, v in draw.sent.items()}


def invisible_in_names(draw: Draw) -> Iterator[Json]:
    """Marks in names that nobody sees."""
    return all_named(draw, "{}\u200b", "\ufeff{}", "{}\u00a0", "\u2060{}")


def value_as_flag(draw: Draw) -> Iterator[Json]:
    """A listed value as the name of a flag."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        if isinstance(value, str) and value in draw.listed(name) and value not in draw.properties:
            rest = {key: each for key, each in draw.sent.items() if key != name}
            yield {**rest, value: True}


# Values


def day_of(value: Any) -> date | None:
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None


_WANTED = ("{} must be a date in the form YYYY-MM-DD", "Invalid format for {}: expected yyyy-MM-dd",
           "time data for '{}' does not match format '%Y-%m-%d'")  # fmt: skip


def each_day(draw: Draw, form: Callable[[date], Sequence[Any]]) -> Iterator[Made]:
    """A day in another form than the one that the server asks for."""
    for name in draw.shuffled(draw.sent):
        text = draw.sent[name]
        day = day_of(text) if isinstance(text, str) and len(text) == 10 else None
        for new in draw.shuffled(form(day)) if day else ():
            yield refused_with(draw, draw.valued(name, new), draw.rng.choice(_WANTED).format(name))


def epochs(draw: Draw) -> Iterator[Made]:
    """A day as the seconds or milliseconds since 1970."""

    def forms(day: date) -> list[Any]:
        seconds = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        return [str(seconds), str(1000 * seconds)]

    return each_day(draw, forms)


def days_in_full(draw: Draw) -> Iterator[Made]:
    """A day with its weekday, its week, or a midnight."""

    def forms(day: date) -> list[str]:
        return [f"{day:%A, %d %B %Y}", f"{day}T00:00:00.000Z", f"{day} 00:00", f"{day:%Y-W%V-%u}",
                f"{day:%a, %d %b %Y} 00:00:00 GMT", f"{day:%b} {day.day} {day.year}"]  # fmt: skip

    return each_day(draw, forms)


def python_text(draw: Draw) -> Iterator[Json]:
    """Lists and objects as Python prints them."""

    def forms(_: str, value: Any) -> list[str]:
        if isinstance(value, dict) and value:
            return [str(value)]
        if not isinstance(value, list) or not value:
            return []
        held = ", ".join(map(repr, value))
        return [str(value), f"({held},)" if len(value) == 1 else f"({held})", f"{{{held}}}"]

    return with_value(draw, forms)


def link_around(draw: Draw) -> Iterator[Json]:
    """A value as a link of Markdown or HTML, with its own address."""
    return with_text(
        draw,
        lambda _, value: (f"[{value}](https://example.com/{quote(value)})", f"[{value}]({value})",
                          f'<a href="https://example.com">{value}</a>'),
    )  # fmt: skip


def encoded(draw: Draw) -> Iterator[Json]:
    """Values as an address or a page writes them."""
    return with_text(
        draw, lambda _, value: [quote(value, safe=""), html.escape(value), value.replace(" ", "+")]
    )


def with_unit_beside(draw: Draw) -> Iterator[Json]:
    """A number as an object with its unit."""

    def forms(name: str, value: Any) -> list[Json]:
        noun = words_of(name)[-1].lower()
        return [{"value": value, "unit": noun}, {"amount": value, "currency": "USD"},
                {"number": value, "type": noun}] if is_number(value) else []  # fmt: skip

    return with_value(draw, forms)


_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth",
             "ninth", "tenth")  # fmt: skip


def ordinals(draw: Draw) -> Iterator[Json]:
    """A number as one says which."""

    def forms(_: str, value: Any) -> list[str]:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return []
        end = {1: "st", 2: "nd", 3: "rd"}.get(value % 10 if value % 100 // 10 != 1 else 0, "th")
        return [f"{value}{end}", *_ORDINALS[value : value + 1]]

    return with_value(draw, forms)


def notations(draw: Draw) -> Iterator[Json]:
    """A number as a programming language writes it."""

    def forms(_: str, value: Any) -> list[str]:
        if not is_number(value):
            return []
        marked = [f"{value}L", f"int({value})", f"+{value}"] if isinstance(value, int) else []
        whole = isinstance(value, int) and value >= 0
        more = [hex(value), f"{value:_}" if value >= 1000 else f"0{value}"] if whole else []
        return [*marked, *more, f"{value}f", f"Number({value})", f'"{value}"']

    return with_value(draw, forms)


def list_in_one(draw: Draw) -> Iterator[Json]:
    """A list whose only item is a text of them all."""

    def forms(_: str, value: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) < 2 or not all(map(is_plain, value)):
            return []
        return [[json.dumps(value)], [", ".join(map(str, value))], [str(value)]]

    return with_value(draw, forms)


def invisible_in_values(draw: Draw) -> Iterator[Json]:
    """Marks of typesetting in or around a text."""
    return with_text(
        draw,
        lambda _, value: [f"\u201c{value}\u201d", f"{value}\u200b", f"\ufeff{value}",
                          f"{value}\u00a0", value.replace("-", "\u2011")],
    )  # fmt: skip


def addressed(draw: Draw) -> Iterator[Json]:
    """A name as one mentions or writes to it."""

    def forms(_: str, value: str) -> list[str]:
        if "@" in value:
            return [f"mailto:{value}", f"<{value}>", f"Customer <{value}>"]
        return [f"@{value}"] if value.replace("-", "").replace("_", "").isalnum() else []

    return with_text(draw, forms)


def without_mark(draw: Draw) -> Iterator[Json]:
    """An id without the mark before it."""
    return with_text(draw, lambda _, v: [v[1:]] if not v[0].isalnum() and len(v) > 3 else ())


def explained(draw: Draw) -> Iterator[Json]:
    """A value with a remark behind it."""

    def forms(_: str, value: Any) -> list[str]:
        if not is_plain(value) or isinstance(value, bool) or " " in str(value):
            return []
        return [f"{value} (as the user asked)", f"{value} # as requested", f"{value} // given",
                f"{value} - from the task"]  # fmt: skip

    return with_value(draw, forms)


def qualified(draw: Draw) -> Iterator[Json]:
    """A value with another one of the call before it, which stays where it is."""
    for one in draw.shuffled(draw.sent):
        for other in draw.shuffled(draw.sent):
            first, second = draw.sent[one], draw.sent[other]
            if one != other and all(isinstance(v, str) and " " not in v for v in (first, second)):
                for mark in draw.shuffled(("/", ":", ".")):
                    yield draw.valued(other, f"{first}{mark}{second}")


# Shapes


def _leaves(value: Any, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in pairs:
            yield from _leaves(each, (*at, str(key)))
    else:
        yield at, value


def form_encoded(draw: Draw) -> Iterator[Json]:
    """What is nested, under the names that a form gives it."""
    leaves = list(_leaves(draw.sent, ()))
    if any(len(at) > 1 for at, _ in leaves):
        for form in draw.shuffled(("[{}]", ".{}", "__{}", "/{}")):
            yield {at[0] + "".join(form.format(part) for part in at[1:]): of for at, of in leaves}
    for name, value in draw.sent.items():
        if isinstance(value, list) and value and all(map(is_plain, value)):
            rest = {key: each for key, each in draw.sent.items() if key != name}
            yield {**rest, f"{name}[]": value}


def _restyled(value: Any, style: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {style(key): _restyled(each, style) for key, each in value.items()}
    return [_restyled(each, style) for each in value] if isinstance(value, list) else value


def style_inside(draw: Draw) -> Iterator[Json]:
    """The names inside of objects in another style."""
    for style in draw.shuffled((camel, snake, str.upper, str.title)):
        sent = {name: _restyled(value, style) for name, value in draw.sent.items()}
        if sent != draw.sent:
            yield sent


def entries(draw: Draw) -> Iterator[Json]:
    """The call as a list of pairs, or of lines."""
    pairs = [[name, value] for name, value in draw.sent.items()]
    yield from under(draw, pairs, "entries", "arguments", "params")
    yield from under(draw, [dict([pair]) for pair in pairs], "arguments", "fields", "items")
    if all(map(is_plain, draw.sent.values())):
        lines = [f"{name}: {value}" for name, value in draw.sent.items()]
        yield from under(draw, lines, "arguments", "parameters")


def requests(draw: Draw) -> Iterator[Json]:
    """The call as a protocol's request."""
    tool, sent = draw.call.tool, draw.sent
    params = {"name": tool, "arguments": sent}
    forms: tuple[Json, ...] = (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        {"method": "tools/call", "params": params}, {"variables": {"input": sent}},
        {"operationName": tool, "variables": sent}, {"method": "POST", "body": sent},
        {"httpMethod": "POST", "requestBody": {"content": {"application/json": sent}}},
        {"server": draw.call.server, "tool": tool, "parameters": sent},
        {"request": {"data": {"type": tool, "attributes": sent}}},
    )  # fmt: skip
    for form in draw.shuffled(forms):
        if not form.keys() & draw.properties.keys():
            yield form


def batch_of_one(draw: Draw) -> Iterator[Json]:
    """A batch with this one call in it."""
    yield from under(draw, [draw.sent], "calls", "requests", "batch", "items")
    yield from under(draw, [{"arguments": draw.sent}], "calls", "requests")
    yield from under(draw, [{"tool": draw.call.tool, "args": draw.sent}], "calls", "actions")


def every_value_in_a_list(draw: Draw) -> Iterator[Json]:
    """Each value as the only one of a list, as a query is read."""
    yield {name: value if isinstance(value, list) else [value] for name, value in draw.sent.items()}


def _in_code(value: Any) -> str:
    return repr(value) if not isinstance(value, bool) else str(value)


def code(draw: Draw) -> Iterator[Json]:
    """The call as a line of a program."""
    tool, sent = draw.call.tool, draw.sent
    named = ", ".join(f"{name}={_in_code(value)}" for name, value in sent.items())
    body = ", ".join(f"{name}: {json.dumps(value)}" for name, value in sent.items())
    lines = (f"{tool}({named})", f"result = {tool}({named})", f"await client.{tool}({{{body}}})",
             f"print({tool}({named}))", f"{tool}({json.dumps(sent)})")  # fmt: skip
    for line in draw.shuffled(lines):
        yield from under(draw, line, "code", "input", "call", "expression")


def loose_json(draw: Draw) -> Iterator[Json]:
    """The call as text that is nearly JSON: of JavaScript, of Python, with remarks and commas."""
    text = json.dumps(draw.sent, indent=2)
    lines = text.splitlines()
    noted = "\n".join([lines[0], "  // the arguments", *lines[1:]])
    bare = "{" + ", ".join(f"{n}: {json.dumps(v)}" for n, v in draw.sent.items()) + "}"
    forms = [str(draw.sent), bare, f"{text[:-2]},\n}}", f"{text};", f"json{text}", noted,
             f"{text}\n{text}"]  # fmt: skip
    for form in draw.shuffled(forms):
        yield from under(draw, form, "arguments", "input", "json", "payload")


def tagged(draw: Draw) -> Iterator[Json]:
    """A value as one of a union, with its tag."""

    def forms(_: str, value: Any) -> list[Json]:
        if not is_plain(value):
            return []
        tag = {str: "string", bool: "boolean", int: "integer"}.get(type(value), "number")
        block = [{"type": "text", "text": value}] if isinstance(value, str) else []
        return [{tag.title(): value}, {"type": tag, tag: value}, {"kind": tag, "data": value},
                {"Some": value}, *block]  # fmt: skip

    return with_value(draw, forms)


def equal_to(draw: Draw) -> Iterator[Json]:
    """A value as a filter that asks for it."""
    return with_value(
        draw,
        lambda _, value: [{key: value} for key in ("eq", "$eq", "equals", "is", "exact")]
        if is_plain(value) else (),
    )  # fmt: skip


def patches(draw: Draw) -> Iterator[Json]:
    """The call as changes of an object."""
    adds = [{"op": "add", "path": f"/{name}", "value": of} for name, of in draw.sent.items()]
    yield from under(draw, adds, "operations", "patch")
    yield from under(draw, draw.sent, "$set", "set", "set_fields", "update")


_OF_FRAMEWORKS: tuple[tuple[str, Any], ...] = (
    ("_meta", {"progressToken": 1}), ("tool_call_id", "call_9Xk2"), ("run_id", "run-7"),
    ("callbacks", None), ("config", {"tags": []}), ("stream", False), ("trace_id", "00-4bf9-01"),
    ("tool_choice", "auto"), ("session", "s1"), ("model", "gpt-4o"),
)  # fmt: skip


def frameworks_own(draw: Draw) -> Iterator[Json]:
    """What a framework passes on beside the arguments."""
    for count in (1, 2, 3):
        more = dict(draw.shuffled(_OF_FRAMEWORKS)[:count])
        if not more.keys() & draw.properties.keys():
            yield {**draw.sent, **more}


def stand_ins(draw: Draw) -> Iterator[Json]:
    """For optional parameters what stands in their documentation."""
    left = [name for name in draw.properties if name not in draw.sent]
    optional = [name for name in left if name not in draw.schema.get("required", ())]
    for name in draw.shuffled(optional):
        for text in draw.shuffled((f"<{name}>", "string", "optional", "<optional>", "default")):
            yield draw.valued(name, text)


def tables(draw: Draw) -> Iterator[Json]:
    """The call as a table of one row."""
    if len(draw.sent) > 1 and all(is_plain(v) and "," not in str(v) for v in draw.sent.values()):
        names, row = list(draw.sent), [str(value) for value in draw.sent.values()]
        drawn = "\n".join(f"| {' | '.join(each)} |" for each in (names, ["---"] * len(row), row))
        csv = f"{','.join(names)}\n{','.join(row)}"
        yield from under(draw, draw.rng.choice((drawn, csv)), "table", "input", "data")


# Beyond repair


def relative_dates(draw: Draw) -> Iterator[Made]:
    """A day by how far it is from a day that nobody names."""
    return each_day(draw, lambda _: ("tomorrow", "next Friday", "in two weeks", "end of month"))


def other_operators(draw: Draw) -> Iterator[Json]:
    """A filter that asks for anything but the value."""
    return with_value(
        draw,
        lambda _, value: [{key: value} for key in ("gt", "ne", "not", "$lt", "contains")]
        if is_plain(value) and not isinstance(value, bool) else (),
    )  # fmt: skip


def several_for_one(draw: Draw) -> Iterator[Json]:
    """Two values where one is due."""
    for name in draw.shuffled(draw.sent):
        others = [each[name] for each in draw.others if name in each]
        for other in draw.shuffled(others):
            if is_plain(draw.sent[name]) and other != draw.sent[name] and is_plain(other):
                yield draw.valued(name, [draw.sent[name], other])


def _unstated(draw: Draw) -> list[str]:
    return [
        name
        for name in draw.shuffled(draw.required)
        if isinstance(draw.sent[name], str | int) and not isinstance(draw.sent[name], bool)
        and len(str(draw.sent[name])) > 3 and not draw.listed(name)
        and not draw.is_stated(draw.sent[name])
    ]  # fmt: skip


def unknown(draw: Draw, texts: Callable[[str, Any], Sequence[str]]) -> Iterator[Made]:
    says = ("{0} not found: {1}", "invalid {0} '{1}'", "No such {0}: {1}", "{0} does not exist")
    for name in _unstated(draw):
        for text in draw.shuffled(texts(name, draw.sent[name])):
            said = draw.rng.choice(says).format(name, text)
            yield refused_with(draw, draw.valued(name, text), said)


def pronouns(draw: Draw) -> Iterator[Made]:
    """A word for the one that was meant."""
    return unknown(draw, lambda name, _: (
        "me", "current", "latest", "auto", f"my_{name}", f"the last {words_of(name)[0].lower()}",
    ))  # fmt: skip


def cut_values(draw: Draw) -> Iterator[Made]:
    """The start of a value, and dots."""
    return unknown(draw, lambda _, v: (f"{str(v)[:3]}...", f"{str(v)[: len(str(v)) // 2]}\u2026"))


def two_calls(draw: Draw) -> Iterator[Json]:
    """Two calls in one batch."""
    for other in draw.shuffled(draw.others):
        if other != draw.sent:
            yield from under(draw, [draw.sent, other], "calls", "requests", "batch")


# Together


def speaks_for_itself(draw: Draw) -> bool:
    return draw.call.server in bfcl.DEVELOPMENT or draw.call.server == "retail"


def refused_with(draw: Draw, sent: Json, message: str) -> Made:
    error = {"type": "ToolError", "message": message}
    return Made(sent, error=None if speaks_for_itself(draw) else error)


KINDS: Mapping[str, Sent] = {
    "said twice": said_twice, "paths for names": paths_for_names, "signature's names":
    signature_names, "invisible marks in names": invisible_in_names, "listed value as a flag":
    value_as_flag, "Python's text": python_text, "link around": link_around, "encoded": encoded,
    "unit beside the number": with_unit_beside, "ordinal": ordinals, "number of a program":
    notations, "list in one item": list_in_one, "invisible marks in values": invisible_in_values,
    "mention or address": addressed, "id without its mark": without_mark, "remark behind":
    explained, "qualified value": qualified, "form's names": form_encoded, "style inside":
    style_inside, "entries": entries, "protocol's request": requests, "batch of one": batch_of_one,
    "every value in a list": every_value_in_a_list, "line of a program": code, "loose JSON":
    loose_json, "tagged value": tagged, "filter for the value": equal_to, "changes of an object":
    patches, "framework's own": frameworks_own, "stand-in for optional": stand_ins,
    "table": tables,
}  # fmt: skip
WITH_ERRORS: Mapping[str, Maker] = {"epoch for a day": epochs, "day in full": days_in_full}
BEYOND: Mapping[str, Sent] = {
    "another filter": other_operators, "several for one": several_for_one, "two calls": two_calls,
}  # fmt: skip
BEYOND_WITH_ERRORS: Mapping[str, Maker] = {
    "relative day": relative_dates, "pronoun": pronouns, "cut value": cut_values,
}  # fmt: skip


def _of(kinds: Mapping[str, T], *, kept: bool) -> dict[str, T]:
    return {name: of for name, of in kinds.items() if is_kept(name) is kept}


def refused(make: Sent, chosen: Sequence[Voice]) -> Maker:
    """A maker of what a server refuses in one of the voices, where it does not speak for itself."""

    def made(draw: Draw) -> Iterator[Made]:
        for sent in make(draw):
            errors = []
            if not speaks_for_itself(draw):
                errors = sorted(seal.Draft202012Validator(draw.schema).iter_errors(sent), key=str)
            voice = random.Random(f"{draw.call.tool} {sent}").choice(chosen)
            said = voices.said(voice, draw.call.tool, errors) if errors else None
            yield Made(sent, error=said)

    return made


def families(*, kept: bool) -> dict[str, Maker]:
    """The kinds that can be repaired."""
    chosen = tuple(_of(VOICES, kept=kept).values())
    found = {name: refused(make, chosen) for name, make in _of(KINDS, kept=kept).items()}
    return found | _of(WITH_ERRORS, kept=kept)


def beyond_repair(*, kept: bool) -> dict[str, Maker]:
    """Those that cannot."""
    chosen = tuple(_of(VOICES, kept=kept).values())
    found = {name: refused(make, chosen) for name, make in _of(BEYOND, kept=kept).items()}
    return found | _of(BEYOND_WITH_ERRORS, kept=kept)
