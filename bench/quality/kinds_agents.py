"""Mistakes as language-model agents make them on MCP servers and functions, in servers' voices.

Each kind is a way to send a right call wrongly: in another API's words, in an envelope, as text of
another language, with marks, thoughts and empty values. By a hash of its name a kind is developed
on or kept for the final table, and so is each voice. Calls of the kinds `BEYOND` hold no right
repair.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar
from urllib.parse import urlencode

from bench.quality import bfcl, seal, voices
from bench.quality.kinds_damage import Draw, Made, Maker
from bench.quality.kinds_words import joined_as, words_of
from bench.quality.trial import Json
from bench.quality.voices_agents import VOICES, Voice, half

Sent = Callable[[Draw], Iterator[Json]]
"""What is sent instead of a right call."""


def _plain(value: Any) -> bool:
    return not isinstance(value, dict | list) and value is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values(draw: Draw, form: Callable[[str, Any], Sequence[Any]]) -> Iterator[Json]:
    """The call with one value in another form."""
    for name in draw.shuffled(draw.sent):
        for value in draw.shuffled(form(name, draw.sent[name])):
            yield draw.valued(name, value)


def _numbers(draw: Draw, form: Callable[[str, float], Sequence[Any]]) -> Iterator[Json]:
    return _values(draw, lambda name, value: form(name, value) if _is_number(value) else ())


def _noun(name: str) -> str:
    """What a name is the id or the number of."""
    words = [word.lower() for word in words_of(name)]
    rest = [word for word in words if word not in ("id", "ids", "number", "no", "sha", "name")]
    return (rest or words or ["item"])[0]


def _free(draw: Draw, *names: str) -> bool:
    return not any(name in draw.properties or name in draw.sent for name in names)


# Names

_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "owner": ("workspace", "namespace", "account"), "repo": ("project", "repository_slug"),
    "issue_number": ("issue_iid", "issueKey"), "pullNumber": ("merge_request_iid", "pr_id"),
    "title": ("summary", "subject"), "body": ("details", "markdown"), "path": ("filepath", "file"),
    "branch": ("ref_name", "head_ref"), "sha": ("commit_id", "oid"), "labels": ("tags",),
    "assignees": ("owners", "assigned_to"), "message": ("commit_message", "payload"),
    "query": ("search_term", "jql"), "perPage": ("maxResults", "hits"), "state": ("status",),
    "file_name": ("target_file", "filename"), "dir_name": ("directory_path", "dirname"),
    "folder": ("dest_dir",), "content": ("file_text", "new_content"), "pattern": ("needle",),
    "receiver_id": ("recipient", "to_user"), "location": ("place", "geo"), "date": ("day", "when"),
    "language": ("lang", "locale"), "user_id": ("account_id", "uid"), "name": ("display_name",),
    "type": ("category", "kind"), "order_id": ("order_number", "orderRef"), "item_ids": ("skus",),
    "ticket_id": ("case_id", "ticketKey"), "username": ("login", "handle"), "city": ("town",),
    "duration": ("length", "period"), "amount": ("sum", "quantity"), "source": ("src_path",),
    "destination": ("dst_path",), "description": ("notes", "summary"), "address": ("street_line",),
}  # fmt: skip


def other_provider(draw: Draw) -> Iterator[Json]:
    """The words of another service with the same purpose, for all names that it has."""
    for _ in range(4):
        names = {
            name: draw.rng.choice(_ELSEWHERE[name]) for name in draw.sent if name in _ELSEWHERE
        }
        if names and _free(draw, *names.values()) and len({*names.values()}) == len(names):
            yield {names.get(name, name): value for name, value in draw.sent.items()}


def one_or_many(draw: Draw) -> Iterator[Json]:
    """A list of one under the singular's name as its item, or a value under the plural's."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        other, new = f"{name}s", [value]
        if isinstance(value, list) and len(value) == 1 and name.endswith("s"):
            other, new = name[:-1], value[0]
        elif not _plain(value):
            continue
        if _free(draw, other):
            yield {(other if key == name else key): (new if key == name else each)
                   for key, each in draw.sent.items()}  # fmt: skip


_PAGES = {
    "perPage": ("limit", "pageSize", "results_per_page", "max_results", "size"),
    "page": ("page_number", "pageIndex", "page_no"), "limit": ("pageSize", "top", "take", "count"),
    "after": ("cursor", "next_cursor", "pageToken"), "offset": ("skip", "start", "startAt"),
}  # fmt: skip


def pagination(draw: Draw) -> Iterator[Json]:
    """How another API names its pages."""
    for name in draw.shuffled(name for name in draw.sent if name in _PAGES):
        for new in draw.shuffled(_PAGES[name]):
            if _free(draw, new):
                yield {(new if key == name else key): value for key, value in draw.sent.items()}


def decorated(draw: Draw) -> Iterator[Json]:
    """Marks of templates, headers and lists around all names."""
    forms = ("${}", ":{}", "{{{}}}", "{}:", " {}", '"{}"', "<{}>", "{}=", "{} (required)", "@{}")
    for form in draw.shuffled(forms):
        yield {form.format(name): value for name, value in draw.sent.items()}


def numbered(draw: Draw) -> Iterator[Json]:
    """The values by their place in the signature."""
    order = [name for name in draw.properties if name in draw.sent]
    if order and list(draw.properties)[: len(order)] == order:
        for form, start in draw.shuffled((("arg{}", 0), ("{}", 0), ("param{}", 1))):
            yield {form.format(at + start): draw.sent[name] for at, name in enumerate(order)}


# Values


def around_numbers(draw: Draw) -> Iterator[Json]:
    """Words beside a number that change nothing of it."""
    return _numbers(
        draw,
        lambda name, value: (
            f"{value} (int)", f"{name}={value}", f"{name}: {value}", f"= {value}", f"{value} max",
        ),
    )  # fmt: skip


def of_a_locale(draw: Draw) -> Iterator[Json]:
    """Numbers with a comma, grouped by blanks, or in full-width digits."""

    def forms(_: str, value: float) -> list[str]:
        if isinstance(value, float) and not value.is_integer():
            return [str(value).replace(".", ",")]
        whole = int(value)
        wide = "".join(chr(ord(digit) + 0xFEE0) for digit in str(whole) if digit.isdigit())
        grouped = f"{whole:,}".replace(",", "\u202f")
        return [f"{whole},00", grouped] if abs(whole) >= 1000 else [f"{whole},0", wide]

    return _numbers(draw, forms)


_MONTHS = {
    "d. {} Y": ("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August",
                "September", "Oktober", "November", "Dezember"),
    "d {} Y": ("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août",
               "septembre", "octobre", "novembre", "décembre"),
    "d de {} de Y": ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto",
                     "septiembre", "octubre", "noviembre", "diciembre"),
}  # fmt: skip


def _local_dates(text: Any) -> list[str]:
    try:
        day = date.fromisoformat(text)
    except (TypeError, ValueError):
        return []
    found = [
        form.replace("d", str(day.day), 1).replace("Y", str(day.year)).format(names[day.month - 1])
        for form, names in _MONTHS.items()
    ]
    found += [f"{day.year}年{day.month}月{day.day}日", f"{day:%b} {day.day}th, {day.year}"]
    return found + ([f"{day:%d/%m/%Y}"] if day.day > 12 else [])


def dates_of_a_locale(draw: Draw) -> Iterator[Made]:
    """Days as other languages write them; the server says which form it wants."""
    says = ("Invalid value for '{}': expected format YYYY-MM-DD",
            "{}: String does not match the pattern yyyy-MM-dd",
            "Ungültiges Datum in '{}', erwartet wird JJJJ-MM-TT (YYYY-MM-DD)")  # fmt: skip
    for name in draw.shuffled(draw.sent):
        for text in draw.shuffled(_local_dates(draw.sent[name])):
            yield _said(draw, draw.valued(name, text), draw.rng.choice(says).format(name))


def labels(draw: Draw) -> Iterator[Json]:
    """A listed value as its label, or as a member of an enumeration."""
    for name in draw.shuffled(draw.sent):
        value, listed = draw.sent[name], draw.listed(name)
        if isinstance(value, str) and value in listed:
            bare, of = value.upper().replace("-", "_"), joined_as("a_b", words_of(name))
            label = " ".join(words_of(value)).capitalize()
            pascal = "".join(word.title() for word in words_of(name))
            for new in draw.shuffled(
                (f"{pascal}.{bare}", f"{of.upper()}_{bare}", f"{label} ({value})", f"{label} {of}")
            ):
                if new not in listed:
                    yield draw.valued(name, new)


_IS_ID = frozenset(("id", "ids", "number", "issue", "pull", "sha", "no"))


def _names_id(name: str) -> bool:
    return not _IS_ID.isdisjoint(word.lower() for word in words_of(name))


def prefixed_ids(draw: Draw) -> Iterator[Json]:
    """An id with what it is the id of."""

    def forms(name: str, value: Any) -> list[str]:
        if not _names_id(name) or not (_is_number(value) or isinstance(value, str)):
            return []
        noun = _noun(name)
        return [f"{noun}-{value}", f"{noun}:{value}", f"id:{value}", f"{noun} #{value}",
                f"{noun}/{value}", f"{noun.upper()}-{value}"]  # fmt: skip

    return _values(draw, forms)


def urls(draw: Draw) -> Iterator[Json]:
    """The address of a thing in the place of its name or id."""
    owner, repo = draw.sent.get("owner"), draw.sent.get("repo")

    def forms(name: str, value: Any) -> list[str]:
        if name == "owner":
            return [f"https://github.com/{value}"]
        if name == "repo" and owner:
            return [f"https://github.com/{owner}/{value}", f"git@github.com:{owner}/{value}.git"]
        if not _names_id(name) or not _plain(value):
            return []
        base = f"https://github.com/{owner}/{repo}" if owner and repo else "https://app.acme.io"
        return [f"{base}/{_noun(name)}s/{value}", f"{base}/{_noun(name)}s/{value}?tab=activity"]

    return _values(draw, forms)


def flags(draw: Draw) -> Iterator[Json]:
    """Yes and no in other words, or as numbers."""
    ways = ((1, 0), ("enabled", "disabled"), ("Yes.", "No."), ("ON", "OFF"), ("checked",
            "unchecked"), ("true,", "false,"))  # fmt: skip
    return _values(
        draw,
        lambda _, value: [yes if value else no for yes, no in ways]
        if isinstance(value, bool) else (),
    )  # fmt: skip


def _scalars(value: Any, least: int) -> bool:
    return isinstance(value, list) and len(value) >= least and all(map(_plain, value))


def lines(draw: Draw) -> Iterator[Json]:
    """A list as the lines of a text."""

    def forms(_: str, value: Any) -> list[str]:
        if not _scalars(value, 2):
            return []
        marks = ("- {}", "* {}", "\u2022 {}", "{}")
        return [
            "\n".join(f"{at}. {each}" for at, each in enumerate(value, 1)),
            *("\n".join(mark.format(each) for each in value) for mark in marks),
        ]

    return _values(draw, forms)


def list_forms(draw: Draw) -> Iterator[Json]:
    """A list inside of another one, by its places, or each item as an object."""

    def forms(name: str, value: Any) -> list[Any]:
        if not _scalars(value, 1):
            return []
        key = name[:-1] if name.endswith("s") else "value"
        return [[value], {str(at): each for at, each in enumerate(value)}, {"items": value},
                [{key: each} for each in value], [{"name": each} for each in value]]  # fmt: skip

    return _values(draw, forms)


def all_texts(draw: Draw) -> Iterator[Json]:
    """Every value as text, as Python or as JSON prints it."""
    if sum(not isinstance(value, str) for value in draw.sent.values()) >= 2:
        for write in draw.shuffled((str, json.dumps)):
            yield {
                name: value if isinstance(value, str) else write(value)
                for name, value in draw.sent.items()
            }


_OF_PATHS = frozenset(("path", "file", "folder", "dir", "directory", "source", "filename"))


def paths(draw: Draw) -> Iterator[Made]:
    """A file's name as an address or with backslashes, or in a home that the tool does not know."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        if not isinstance(value, str) or _OF_PATHS.isdisjoint(map(str.lower, words_of(name))):
            continue
        forms = [f"file:///{value}", f"file://{value}", f'"{value}"', f"{value}#L1"]
        forms += [value.replace("/", "\\")] if "/" in value else []
        for new in draw.shuffled(forms):
            yield _said(draw, draw.valued(name, new), f"{name} does not exist: {new}")


# Shapes


def groups(draw: Draw) -> Iterator[Json]:
    """The arguments in two objects that nobody asked for."""
    names = draw.shuffled(draw.sent)
    first, rest = names[: (len(names) + 1) // 2], names[(len(names) + 1) // 2 :]
    for one, two in draw.shuffled((("target", "options"), ("resource", "fields"), ("ids", "data"))):
        if rest and _free(draw, one, two):
            yield {one: {name: draw.sent[name] for name in first},
                   two: {name: draw.sent[name] for name in rest}}  # fmt: skip


def envelopes(draw: Draw) -> Iterator[Json]:
    """The call as an API of a model writes it."""
    tool, sent = draw.call.tool, draw.sent
    if draw.properties.keys() & {"name", "type", "id", "input", "function", "tool", "action"}:
        return
    yield from draw.shuffled(
        (
            {"name": tool, "arguments": sent},
            {"tool": tool, "input": sent},
            {"type": "tool_use", "id": "toolu_01A", "name": tool, "input": sent},
            {"function": {"name": tool, "arguments": json.dumps(sent)}},
            {"type": "function", "function": {"name": tool, "arguments": sent}},
            {"action": tool, "action_input": sent},
            {"tool_calls": [{"name": tool, "args": sent}]},
        )
    )


def twice_escaped(draw: Draw) -> Iterator[Json]:
    """JSON text within JSON text, of the call or of one value."""
    inner = json.dumps(json.dumps(draw.sent))
    for key in draw.shuffled(("arguments", "input", "params")):
        if _free(draw, key):
            yield {key: inner}
    yield from _values(
        draw,
        lambda _, value: [json.dumps(json.dumps(value))] if isinstance(value, dict | list) else (),
    )


def fenced(draw: Draw) -> Iterator[Json]:
    """Markdown around the call, or around a value that is no text."""
    text = json.dumps(draw.sent, indent=2)
    for key in draw.shuffled(("input", "arguments", "content")):
        if _free(draw, key):
            yield {key: f"```json\n{text}\n```"}
    yield from _values(
        draw,
        lambda _, value: ()
        if isinstance(value, str)
        else (f"`{json.dumps(value)}`", f"```\n{json.dumps(value)}\n```",
              f"```json\n{json.dumps(value)}\n```"),
    )  # fmt: skip


_THOUGHTS: tuple[tuple[str, Any], ...] = (
    ("reasoning", "The user wants this, so I call the tool."), ("plan", ["look", "act"]),
    ("step", 1), ("confidence", 0.9), ("next_action", "report back"), ("thoughts", "Let me see."),
    ("is_final", False), ("explanation", "needed for the task"), ("toolSummary", "one call"),
)  # fmt: skip


def thoughts(draw: Draw) -> Iterator[Json]:
    """What a model thinks beside the arguments."""
    for count in (1, 2, 3):
        more = dict(draw.shuffled(_THOUGHTS)[:count])
        if _free(draw, *more):
            yield {**more, **draw.sent}


def empties(draw: Draw) -> Iterator[Json]:
    """Empty values for what the caller did not want."""
    left = [name for name in draw.properties if name not in draw.sent]
    optional = draw.shuffled(n for n in left if n not in draw.schema.get("required", ()))
    for count in (2, 1, 3):
        for empty in draw.shuffled((None, "", [], {}, "N/A")):
            if len(optional) >= count:
                yield {**draw.sent, **dict.fromkeys(optional[:count], empty)}


def echoed_schema(draw: Draw) -> Iterator[Json]:
    """The schema's own form with values in it."""
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}

    def held(value: Any, key: str) -> Json:
        return {"type": kinds.get(type(value), "object"), key: value}

    for key in draw.shuffled(("value", "default", "const")):
        yield {name: held(value, key) for name, value in draw.sent.items()}
    if _free(draw, "type", "properties"):
        yield {"type": "object", "properties": draw.sent}


def typed_values(draw: Draw) -> Iterator[Json]:
    """Values as protobuf, DynamoDB or MongoDB writes them."""
    proto = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    dynamo = {str: "S", bool: "BOOL", int: "N", float: "N"}
    if all(map(_plain, draw.sent.values())):
        yield from draw.shuffled(
            (
                {name: {proto[type(value)]: value} for name, value in draw.sent.items()},
                {name: {dynamo[type(value)]: str(value) if _is_number(value) else value}
                 for name, value in draw.sent.items()},
                {name: {"$numberLong": str(value)} if _is_number(value) else value
                 for name, value in draw.sent.items()},
            )
        )  # fmt: skip


def command_line(draw: Draw) -> Iterator[Json]:
    """The call as a command with options."""
    if draw.sent and all(map(_plain, draw.sent.values())):
        options = [(name, json.dumps(v) if isinstance(v, bool) else str(v))
                   for name, v in draw.sent.items()]  # fmt: skip
        written = " ".join(f"--{name} {shlex.quote(value)}" for name, value in options)
        for key, given in draw.shuffled(
            (
                ("command", f"{draw.call.tool} {written}"),
                ("args", " ".join(f"--{name}={shlex.quote(value)}" for name, value in options)),
                ("args", [part for name, value in options for part in (f"--{name}", value)]),
                ("argv", [f"{name}={value}" for name, value in options]),
            )
        ):
            if _free(draw, key):
                yield {key: given}


def query_string(draw: Draw) -> Iterator[Json]:
    """The call as the query of an address."""
    if draw.sent and all(map(_plain, draw.sent.values())):
        text = urlencode({name: json.dumps(v) if isinstance(v, bool) else v
                          for name, v in draw.sent.items()})  # fmt: skip
        forms = (("params", text), ("url", f"/{draw.call.tool}?{text}"), ("querystring", text))
        yield from ({key: value} for key, value in draw.shuffled(forms) if _free(draw, key))


def markup(draw: Draw) -> Iterator[Json]:
    """The call as XML or YAML."""
    if draw.sent and all(map(_plain, draw.sent.values())):
        shown = {name: json.dumps(value) if isinstance(value, bool) else value
                 for name, value in draw.sent.items()}  # fmt: skip
        xml = "".join(f"<{name}>{value}</{name}>" for name, value in shown.items())
        tags = "".join(f'<parameter name="{n}">{v}</parameter>' for n, v in shown.items())
        yaml = "\n".join(f"{name}: {value}" for name, value in shown.items())
        for key in ("input", "body"):
            if _free(draw, key):
                yield from ({key: text} for text in draw.shuffled((xml, tags, yaml)))


_ENDS = (("start", "end"), ("from", "to"), ("min", "max"), ("since", "until"), ("begin", "end"),
         ("first", "last"), ("check", "check"))  # fmt: skip


def ranges(draw: Draw) -> Iterator[Json]:
    """Two ends in one field."""
    for one in draw.sent:
        for other in draw.sent:
            a, b = ([word.lower() for word in words_of(name)] for name in (one, other))
            same = [word for word in a if word in b]
            ends = tuple("".join(w for w in each if w not in same) for each in (a, b))
            if ends not in _ENDS[:-1] or not _plain(draw.sent[one]):
                continue
            low, high = draw.sent[one], draw.sent[other]
            rest = {k: v for k, v in draw.sent.items() if k not in (one, other)}
            key = "_".join([*same, "range"])
            for value in draw.shuffled(
                (f"{low}..{high}", f"{low} - {high}", f"{low} to {high}", [low, high],
                 {ends[0]: low, ends[1]: high}, {"start": low, "end": high})
            ):  # fmt: skip
                if _free(draw, key):
                    yield {**rest, key: value}


_PAIRS = (("owner", "repo", "/", "repository"), ("latitude", "longitude", ",", "coordinates"),
          ("lat", "lon", ",", "location"), ("first_name", "last_name", " ", "name"),
          ("lat", "lng", ",", "latlng"), ("city", "country", ", ", "location"),
          ("date", "time", " ", "datetime"), ("base", "head", "...", "range"))  # fmt: skip


def joined(draw: Draw) -> Iterator[Json]:
    """Two values that are often said together, in one."""
    for one, other, mark, key in draw.shuffled(_PAIRS):
        if one in draw.sent and other in draw.sent and _free(draw, key):
            rest = {k: v for k, v in draw.sent.items() if k not in (one, other)}
            yield {key: f"{draw.sent[one]}{mark}{draw.sent[other]}", **rest}


# What the error says


_RENAMED = (
    "Parameter '{old}' is deprecated since v2.0. Use '{new}' instead.",
    "`{old}` has been renamed to `{new}`",
    "'{old}' is no longer supported, please pass '{new}'",
    "unknown field {old}; it was replaced by {new}",
    "400 Bad Request: {old} was removed in 2024-06, see {new}",
    "参数 '{old}' 已弃用, 请改用 '{new}'",
    "Der Parameter '{old}' heißt jetzt '{new}'.",
)


def deprecated(draw: Draw) -> Iterator[Made]:
    """A name of an older version, which tells nothing; the error says the new one."""
    for name in draw.shuffled(draw.sent):
        for old in draw.shuffled(("legacy_param", "arg1", "val", "x", "obj_ref")):
            if _free(draw, old):
                sent = {(old if key == name else key): v for key, v in draw.sent.items()}
                message = draw.rng.choice(_RENAMED).format(old=old, new=name)
                yield Made(sent, f"{old} for {name}", error=_error(message))


# Beyond repair


def _unstated(draw: Draw) -> list[str]:
    found: list[str] = draw.shuffled(
        name
        for name in draw.required
        if isinstance(draw.sent[name], str | int)
        and not isinstance(draw.sent[name], bool)
        and len(str(draw.sent[name])) > 1
        and not draw.listed(name)
        and not draw.is_stated(draw.sent[name])
    )
    return found


def left_empty(draw: Draw) -> Iterator[Made]:
    """Nothing for what is needed, which nobody stated."""
    says = ("{} must not be blank", "'{}' cannot be empty", "Missing value for {}",
            "{} should not be null or empty", "El campo {} es obligatorio.")  # fmt: skip
    for name in _unstated(draw):
        for empty in draw.shuffled((None, "", "N/A", [])):
            message = draw.rng.choice(says).format(name)
            yield Made(draw.valued(name, empty), name, error=_error(message))


def reference(draw: Draw) -> Iterator[Made]:
    """A reference to a result that the server knows nothing of."""
    forms = ("{{{{steps[0].output.{}}}}}", "$PREVIOUS_RESULT.{}", "<{} from step 1>",
             "${{{}}}", "result_of_search().{}", "the {} from above")  # fmt: skip
    for name in _unstated(draw):
        for form in draw.shuffled(forms):
            text = form.format(name)
            said = draw.rng.choice(("{} not found: {}", "invalid {} '{}'", "No such {}: {}"))
            yield _said(draw, draw.valued(name, text), said.format(name, text))


def of_no_list(draw: Draw) -> Iterator[Json]:
    """A listed value that none of the list means."""
    return _values(
        draw,
        lambda name, value: ("banana", "purple", "whatever fits", "tbd")
        if isinstance(value, str) and value in draw.listed(name) else (),
    )  # fmt: skip


def another_unit(draw: Draw) -> Iterator[Json]:
    """A number with a unit that says how much one is."""
    return _numbers(
        draw,
        lambda _, value: (f"{value} dozen", f"{value}k", f"{value} km", f"{value} hours",
                          f"{value}%", f"{value} MB"),
    )  # fmt: skip


def of_another_tool(draw: Draw) -> Iterator[Json]:
    """A call that was meant for another tool of the server."""
    for earlier in reversed(draw.earlier):
        sent = earlier.parameters
        required = set(draw.schema.get("required", ()))
        if earlier.tool != draw.call.tool and sent and len(sent.keys() & draw.sent.keys()) * 2 <= (
            len(draw.sent)
        ) and not required <= sent.keys():  # fmt: skip
            yield sent


# Together


def _error(message: str) -> Json:
    return {"type": "ToolError", "message": message}


def _speaks_for_itself(draw: Draw) -> bool:
    return draw.call.server in bfcl.DEVELOPMENT or draw.call.server == "retail"


def _said(draw: Draw, sent: Json, message: str) -> Made:
    """What a server says of a value that its schema lets through, where none is executed."""
    return Made(sent, error=None if _speaks_for_itself(draw) else _error(message))


KINDS: Mapping[str, Sent] = {
    "another provider's names": other_provider, "one for many": one_or_many,
    "another API's pages": pagination, "marks around names": decorated,
    "numbered names": numbered, "words beside a number": around_numbers,
    "number of a locale": of_a_locale, "listed value's label": labels, "id with its kind":
    prefixed_ids, "address for an id": urls, "flags in other words": flags, "list as lines": lines,
    "list in another form": list_forms, "everything as text": all_texts,
    "arguments in two groups": groups, "a model's envelope": envelopes,
    "JSON escaped twice": twice_escaped, "in a fence": fenced, "thoughts beside": thoughts,
    "empty for optional": empties, "the schema echoed": echoed_schema,
    "typed values": typed_values, "command line": command_line, "query string": query_string,
    "XML or YAML": markup, "a range in one": ranges, "two values in one": joined,
}  # fmt: skip
WITH_ERRORS: Mapping[str, Maker] = {
    "date of a locale": dates_of_a_locale, "file's address": paths,
    "name of an older version": deprecated,
}  # fmt: skip
BEYOND: Mapping[str, Sent] = {
    "of no list": of_no_list, "another unit": another_unit, "another tool's": of_another_tool,
}  # fmt: skip
BEYOND_WITH_ERRORS: Mapping[str, Maker] = {
    "left empty": left_empty, "reference to a result": reference,
}  # fmt: skip
T = TypeVar("T")


def of_half(kinds: Mapping[str, T], *, kept: bool) -> dict[str, T]:
    """The kinds that are developed on, or those that are kept."""
    return {name: of for name, of in kinds.items() if half(f"kind/{name}") is kept}


def refused(make: Sent, chosen: Sequence[Voice]) -> Maker:
    """A maker of what a server refuses in one of the voices, where it does not speak for itself."""

    def made(draw: Draw) -> Iterator[Made]:
        for sent in make(draw):
            errors = []
            if not _speaks_for_itself(draw):
                errors = sorted(seal.Draft202012Validator(draw.schema).iter_errors(sent), key=str)
            voice = draw.rng.choice(chosen)
            said = voices.said(voice, draw.call.tool, errors) if errors else None
            yield Made(sent, error=said)

    return made


def together(kinds: Sequence[Sent], count: int) -> Sent:
    """Several of the kinds in one call, one done to what the one before made."""

    def made(draw: Draw) -> Iterator[Json]:
        for _ in range(4):
            now, done = draw, 0
            for make in draw.shuffled(kinds):
                sent = next((each for each in make(now) if each != now.sent), None)
                if sent is not None:
                    now = replace(now, call=replace(now.call, parameters=sent))
                    done += 1
                if done == count:
                    yield now.sent
                    break

    return made


def families(*, kept: bool) -> dict[str, Maker]:
    """The kinds of a half that can be repaired, and two and three of them at once."""
    kinds, chosen = of_half(KINDS, kept=kept), tuple(of_half(VOICES, kept=kept).values())
    several = {
        "two of these": together(list(kinds.values()), 2),
        "three of these": together(list(kinds.values()), 3),
    }
    found = {name: refused(make, chosen) for name, make in {**kinds, **several}.items()}
    return found | of_half(WITH_ERRORS, kept=kept)


def beyond_repair(*, kept: bool) -> dict[str, Maker]:
    """Those of a half that cannot."""
    chosen = tuple(of_half(VOICES, kept=kept).values())
    kinds = of_half(BEYOND, kept=kept)
    found = {name: refused(make, chosen) for name, make in kinds.items()}
    return found | of_half(BEYOND_WITH_ERRORS, kept=kept)
