"""The shapes of the fifth batch: a call, a list or an object in the notation of something else.

Databases, markup, protocols, tables and other programming languages: what was meant stands in each
of them in full, names and values.
"""

import base64
import html
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from bench.quality.kinds_damage import Draw
from bench.quality.kinds_fresh import Sent, is_number, is_plain, under, with_value
from bench.quality.kinds_words import joined_as, words_of
from bench.quality.trial import Json


def _is_flat(draw: Draw) -> bool:
    return bool(draw.sent) and all(map(is_plain, draw.sent.values()))


def _written(value: Any) -> str:
    """A plain value as text, without marks around."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _joined(draw: Draw, form: str, between: str, write: Callable[[Any], str] = json.dumps) -> str:
    return between.join(form.format(name, write(value)) for name, value in draw.sent.items())


def _texts(draw: Draw, forms: tuple[str, ...], *keys: str) -> Iterator[Json]:
    """The call as one of these texts, under a key that the tool does not have."""
    for form in draw.shuffled(forms) if draw.sent else ():
        yield from under(draw, form, *keys)


# Names and lists


def unfolded(draw: Draw) -> Iterator[Json]:
    """Compound names as objects: `{"issue": {"number": 5}}` for `issue_number`."""
    for name in draw.shuffled(draw.sent):
        head, *rest = [word.lower() for word in words_of(name)] or [""]
        if not rest or head in draw.properties or head in draw.sent:
            continue
        alike = [
            each
            for each in draw.sent
            if [word.lower() for word in words_of(each)][:1] == [head] and each != head
        ]
        inner = {joined_as(each, words_of(each)[1:]): draw.sent[each] for each in alike}
        kept = {each: value for each, value in draw.sent.items() if each not in alike}
        if len(inner) == len(alike):
            yield {**kept, head: inner}


def inside_out(draw: Draw) -> Iterator[Json]:
    """Values as names and names as values."""
    pairs = {_written(value): name for name, value in draw.sent.items() if is_plain(value)}
    if len(pairs) == len(draw.sent) and not pairs.keys() & draw.properties.keys():
        yield pairs


def numbered_items(draw: Draw) -> Iterator[Json]:
    """A list's items in parameters of their own, numbered from 1, as columns are."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        if isinstance(value, list) and len(value) > 1:
            one = name.removesuffix("s")
            rest = {key: each for key, each in draw.sent.items() if key != name}
            for form in draw.shuffled(("{}_{}", "{}{}", "{} {}")):
                items = {form.format(one, at): each for at, each in enumerate(value, 1)}
                if not items.keys() & draw.properties.keys():
                    yield {**rest, **items}


def page_around(draw: Draw) -> Iterator[Json]:
    """A list as the page that an API answers with."""

    def forms(_: str, value: Any) -> list[Json]:
        if not isinstance(value, list) or not value:
            return []
        count = len(value)
        return [
            {"edges": [{"node": each} for each in value]},
            {"data": value, "has_more": False},
            {"results": value, "total": count},
            {"nodes": value, "totalCount": count},
        ]

    return with_value(draw, forms)  # fmt: skip


def as_set(draw: Draw) -> Iterator[Json]:
    """A list as an object that says yes to each of its items."""

    def forms(_: str, value: Any) -> list[Json]:
        texts = isinstance(value, list) and value and all(isinstance(each, str) for each in value)
        return [dict.fromkeys(value, yes) for yes in (True, 1, {})] if texts else []

    return with_value(draw, forms)


def list_elsewhere(draw: Draw) -> Iterator[Json]:
    """A list as text of another language."""

    def forms(_: str, value: Any) -> list[str]:
        plain = isinstance(value, list) and len(value) > 1 and all(map(is_plain, value))
        items = [_written(each) for each in value] if plain else []
        if not items or any(set(",|{}()\"' ") & set(each) for each in items):
            return []
        quoted = ", ".join(json.dumps(each) for each in value)
        return [
            f"{{{','.join(items)}}}",
            "|".join(items),
            f"array({quoted})",
            f"new String[] {{{quoted}}}",
            f"%w[{' '.join(items)}]",
            f"List({quoted})",
        ]

    return with_value(draw, forms)  # fmt: skip


def flags_in_list(draw: Draw) -> Iterator[Json]:
    """The flags that are set, in a list of flags."""
    flags = [name for name, value in draw.sent.items() if isinstance(value, bool)]
    if flags and all(draw.sent[name] for name in flags):
        rest = {name: value for name, value in draw.sent.items() if name not in flags}
        for key in draw.shuffled(("flags", "options", "switches")):
            if key not in draw.properties:
                yield {**rest, key: flags}


def order_in_sort(draw: Draw) -> Iterator[Json]:
    """What to sort by and in which order, in one."""
    by = next(
        (each for each in ("sort", "sort_by", "order_by", "orderBy") if each in draw.sent), ""
    )
    way = next((each for each in ("direction", "order", "sort_order") if each in draw.sent), "")
    if by and way and str(draw.sent[way]).lower() in ("asc", "desc"):
        rest = {name: value for name, value in draw.sent.items() if name != way}
        field, order = draw.sent[by], draw.sent[way]
        sign = "-" if order.lower() == "desc" else "+"
        for text in draw.shuffled((f"{sign}{field}", f"{field}:{order}", f"{field} {order}")):
            yield {**rest, by: text}


# Whole calls


def object_elsewhere(draw: Draw) -> Iterator[Json]:
    """The call as an object of another language."""
    if _is_flat(draw):
        forms = (
            "{" + _joined(draw, ":{}=>{}", ", ") + "}",
            "[" + _joined(draw, "'{}' => {}", ", ") + "]",
            "{" + _joined(draw, "{} = {}", ", ") + "}",
            "%{" + _joined(draw, "{}: {}", ", ") + "}",
            "{" + _joined(draw, '"{}" -> {}', ", ") + "}",
            "(" + _joined(draw, ":{} {}", " ") + ")",
        )
        yield from _texts(draw, forms, "input", "params", "data", "object")  # fmt: skip


def configuration(draw: Draw) -> Iterator[Json]:
    """The call as a file of settings."""
    if _is_flat(draw) and not any("\n" in str(value) for value in draw.sent.values()):
        forms = (
            f"[arguments]\n{_joined(draw, '{} = {}', chr(10))}",
            f"[{draw.call.tool}]\n{_joined(draw, '{}={}', chr(10), _written)}",
            f"{draw.call.tool} {{\n{_joined(draw, '  {} = {}', chr(10))}\n}}",
        )
        yield from _texts(draw, forms, "config", "settings", "input", "toml")


def _in_sql(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value).upper() if isinstance(value, bool) else str(value)


def sql(draw: Draw) -> Iterator[Json]:
    """The call as a statement of SQL."""
    if _is_flat(draw):
        tool, values = draw.call.tool, ", ".join(map(_in_sql, draw.sent.values()))
        forms = (
            f"CALL {tool}({_joined(draw, '{} => {}', ', ', _in_sql)});",
            f"EXEC {tool} {_joined(draw, '@{} = {}', ', ', _in_sql)}",
            f"INSERT INTO {tool} ({', '.join(draw.sent)}) VALUES ({values});",  # noqa: S608 - never run
        )
        yield from _texts(draw, forms, "sql", "statement", "query")


def condition(draw: Draw) -> Iterator[Json]:
    """The call as the condition of a query."""
    if _is_flat(draw):
        forms = (_joined(draw, "{} eq {}", " and ", _in_sql), _joined(draw, "{}:{}", " AND "),
                 _joined(draw, "{} = {}", " AND ", _in_sql))  # fmt: skip
        yield from _texts(draw, forms, "$filter", "where", "filter", "q")


def graphql_text(draw: Draw) -> Iterator[Json]:
    """The call as a document of GraphQL."""
    if _is_flat(draw):
        tool, given = draw.call.tool, _joined(draw, "{}: {}", ", ")
        forms = (f"mutation {{ {tool}(input: {{{given}}}) {{ id }} }}",
                 f"query {{ {tool}({given}) {{ __typename }} }}",
                 f"mutation Run {{\n  {tool}({given})\n}}")  # fmt: skip
        yield from _texts(draw, forms, "query", "mutation", "document", "graphql")


def soap(draw: Draw) -> Iterator[Json]:
    """The call as an envelope of SOAP, or as attributes of XML."""
    if _is_flat(draw):
        tool = draw.call.tool
        parts = "".join(
            f"<tns:{name}>{html.escape(_written(value))}</tns:{name}>"
            for name, value in draw.sent.items()
        )
        quoted = _joined(draw, '{}="{}"', " ", lambda value: html.escape(_written(value)))
        space = "http://schemas.xmlsoap.org/soap/envelope/"
        forms = (
            f'<soap:Envelope xmlns:soap="{space}"><soap:Body><tns:{tool}>{parts}</tns:{tool}>'
            "</soap:Body></soap:Envelope>",
            f"<{tool} {quoted}/>",
            f'<?xml version="1.0"?>\n<request {quoted} />',
        )
        yield from _texts(draw, forms, "xml", "request", "body", "envelope")  # fmt: skip


def xml_as_read(draw: Draw) -> Iterator[Json]:
    """The call as a program reads XML: each text under a mark."""
    if _is_flat(draw):
        texts = {name: _written(value) for name, value in draw.sent.items()}
        for mark in draw.shuffled(("#text", "_", "$t", "__text")):
            yield {name: {mark: text} for name, text in texts.items()}
        yield {"$": texts}


def segments(draw: Draw) -> Iterator[Json]:
    """The call as an address with names in it."""
    if _is_flat(draw):

        def escaped(value: Any) -> str:
            return quote(_written(value), safe="")

        tool = draw.call.tool
        forms = (f"/{tool}/{_joined(draw, '{}/{}', '/', escaped)}",
                 f"/{tool};{_joined(draw, '{}={}', ';', escaped)}",
                 f"{tool}({_joined(draw, '{}={}', ',', _in_sql)})")  # fmt: skip
        yield from _texts(draw, forms, "path", "uri", "endpoint", "route")


def multipart(draw: Draw) -> Iterator[Json]:
    """The call as the parts of a form."""
    if _is_flat(draw):
        line, form = (
            "--X-4b1f",
            '--X-4b1f\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n',
        )
        text = _joined(draw, form, "", _written) + f"{line}--\r\n"
        yield from _texts(draw, (text,), "body", "form", "data", "payload")


def in_base64(draw: Draw) -> Iterator[Json]:
    """The call's JSON in base64."""
    text = base64.b64encode(json.dumps(draw.sent).encode()).decode()
    forms = (text, f"data:application/json;base64,{text}", text.rstrip("="))
    yield from _texts(draw, forms, "payload", "data", "body", "message")


def transcript(draw: Draw) -> Iterator[Json]:
    """What a model wrote to make the call."""
    tool, text = draw.call.tool, json.dumps(draw.sent)
    call = json.dumps({"name": tool, "arguments": draw.sent})
    forms = (
        f"Thought: I should call {tool}.\nAction: {tool}\nAction Input: {text}\nObservation:",
        f"<tool_call>\n{call}\n</tool_call>", f"[TOOL_CALLS][{call}]",
        f"<|python_tag|>{call}<|eom_id|>", f"I will use {tool} with {text} now.",
        f"<think>The user wants {tool}.</think>\n{text}",
    )  # fmt: skip
    yield from _texts(draw, forms, "text", "input", "tool_input", "response")


def protobuf_text(draw: Draw) -> Iterator[Json]:
    """The call as a message of protobuf prints itself."""
    if _is_flat(draw):

        def field(value: Any) -> str:
            if isinstance(value, bool):
                return f"bool_value: {json.dumps(value)}"
            return f"number_value: {value}" if is_number(value) else (
                f"string_value: {json.dumps(value)}")  # fmt: skip

        form = 'fields {{\n  key: "{}"\n  value {{\n    {}\n  }}\n}}'
        text = _joined(draw, form, "\n", field)
        inner = text.replace("\n", "\n  ")
        forms = (text, f'name: "{draw.call.tool}"\nargs {{\n  {inner}\n}}')
        yield from _texts(draw, forms, "args", "function_call", "request", "struct")


def event(draw: Draw) -> Iterator[Json]:
    """The call as a message of a stream."""
    text = json.dumps(draw.sent)
    forms = (f"data: {text}\n\n", f"event: tool_call\nid: 7\ndata: {text}\n\ndata: [DONE]\n\n",
             f"Content-Length: {len(text)}\r\n\r\n{text}", f")]}}',\n{text}")  # fmt: skip
    yield from _texts(draw, forms, "event", "chunk", "message", "data")


def data_frame(draw: Draw) -> Iterator[Json]:
    """The call as a frame of one row."""
    names, values = list(draw.sent), list(draw.sent.values())
    for form in draw.shuffled(
        ({"columns": names, "data": [values]}, {"keys": names, "values": values},
         {"columns": names, "index": [0], "data": [values]}, {"header": names, "rows": [values]},
         {name: {"0": value} for name, value in draw.sent.items()})
    ):  # fmt: skip
        if names and (form.keys() <= draw.sent.keys() or not form.keys() & draw.properties.keys()):
            yield form


LISTS: Mapping[str, Sent] = {
    "compound name unfolded": unfolded, "inside out": inside_out, "numbered items": numbered_items,
    "page around a list": page_around, "list as a set": as_set, "list of another language":
    list_elsewhere, "set flags in a list": flags_in_list, "order in the sort": order_in_sort,
}  # fmt: skip
CALLS: Mapping[str, Sent] = {
    "object of another language": object_elsewhere, "settings": configuration, "statement": sql,
    "condition": condition, "GraphQL's document": graphql_text, "SOAP": soap, "XML as it was read":
    xml_as_read, "segments of an address": segments, "parts of a form": multipart, "base64":
    in_base64, "a model's transcript": transcript, "protobuf's text": protobuf_text,
    "message of a stream": event, "data frame": data_frame,
}  # fmt: skip
