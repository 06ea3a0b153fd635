"""A sixth batch of mistakes: what models send when they take a tool for another one that they know.

Names and values of other vendors and harnesses; what a framework or a broken stream makes of a
call; a guess where a model should have asked. Written without a look at what mends them. A half of
the kinds and voices is kept, by hashes, and measured on other tools. Right is what the undamaged
call does; where two calls could be meant, the kind is beyond repair.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

from bench.quality import kinds_fresh as fresh
from bench.quality import kinds_sixth_words as words
from bench.quality.kinds_damage import Draw, Made, Maker
from bench.quality.kinds_fresh import Sent, is_number, is_plain, with_text, with_value
from bench.quality.kinds_late import is_said, is_unsaid_word, names_id, unknown_key
from bench.quality.kinds_wild import Batch, formed, renamed
from bench.quality.kinds_words import camel, joined_as, lower_words, snake
from bench.quality.trial import Json
from bench.quality.voices_sixth import VOICES


def _without(draw: Draw, *names: str) -> Json:
    return {name: value for name, value in draw.sent.items() if name not in names}


def _is_free(draw: Draw, *names: str) -> bool:
    return not any(name in draw.properties or name in draw.sent for name in names)


# Names


def _more_words(name: str) -> list[str]:
    """The name with a word before or behind it."""
    of = lower_words(name)
    longer = [*([word, *of] for word in ("input", "the", "given", "full")), [*of, "param"]]
    return [joined_as(name, each) for each in longer]


def _fewer_words(name: str) -> list[str]:
    """A name of three words or more with one word less."""
    of = lower_words(name)
    return [joined_as(name, of[:at] + of[at + 1 :]) for at in range(len(of)) if len(of) > 2]


def kebab(draw: Draw) -> Iterator[Json]:
    """All compound names with dashes."""
    yield {"-".join(lower_words(name)): value for name, value in draw.sent.items()}


def pairs(draw: Draw) -> Iterator[Json]:
    """Two names that belong together, as another API has them."""
    for both, elsewhere in draw.shuffled(words.PAIRS.items()):
        for new in draw.shuffled(elsewhere) if {*both} <= draw.sent.keys() else ():
            if _is_free(draw, *new):
                names = dict(zip(both, new, strict=True))
                yield {names.get(name, name): value for name, value in draw.sent.items()}


def names_inside(draw: Draw) -> Iterator[Json]:
    """The names inside of a list's objects, as another vendor has them."""
    for name, value in draw.shuffled(draw.sent.items()):
        rows = value if isinstance(value, list) else []
        keys = rows[0] if rows and all(isinstance(each, dict) for each in rows) else {}
        for key in draw.shuffled(keys):
            for new in draw.shuffled(words.VENDORS.get(key, ())):
                if all(new not in row for row in rows):
                    yield draw.valued(
                        name, [{(new if k == key else k): v for k, v in r.items()} for r in rows]
                    )


# What is around


def more(draw: Draw, options: Mapping[str, Any]) -> Iterator[Json]:
    """One or two of these beside the arguments."""
    for count in (1, 2):
        chosen = dict(draw.shuffled(options.items())[:count])
        if _is_free(draw, *chosen):
            yield {**draw.sent, **chosen}


def call_within_the_call(draw: Draw) -> Iterator[Json]:
    """The whole call once more, in an object beside the arguments."""
    for key in draw.shuffled(("arguments", "params", "input", "kwargs", "tool_input")):
        if _is_free(draw, key):
            yield {**draw.sent, key: draw.sent}


def body_beside(draw: Draw) -> Iterator[Json]:
    """Some arguments as they are, the others in a body, as in the request of an HTTP API."""
    in_path = [name for name in draw.sent if names_id(name) or name in ("owner", "repo", "path")]
    inner = _without(draw, *in_path)
    for key in draw.shuffled(("body", "requestBody", "payload", "data", "query_params")):
        if in_path and inner and _is_free(draw, key):
            yield {**{name: draw.sent[name] for name in in_path}, key: inner}


def in_its_first(draw: Draw) -> Iterator[Json]:
    """The whole call in the first parameter of text, as an object or its text."""
    first = next((n for n in draw.properties if isinstance(draw.sent.get(n), str)), None)
    for value in draw.shuffled((json.dumps(draw.sent), dict(draw.sent))) if first else ():
        yield {first: value}


def run_together(draw: Draw) -> Iterator[Json]:
    """Two arguments in one text, since a tag or a quote was lost."""
    texts = [(name, of) for name, of in draw.shuffled(draw.sent.items()) if isinstance(of, str)]
    for name, one in texts:
        for other, two in texts:
            forms = (f'{one}</parameter>\n<parameter name="{other}">{two}',
                     f"{one}</{name}>\n<{other}>{two}", f'{one}", "{other}": "{two}')  # fmt: skip
            for text in draw.shuffled(forms) if name != other else ():
                yield {**_without(draw, other), name: text}


def two_under_one(draw: Draw) -> Iterator[Json]:
    """Two values that are often said together, under the name of one."""
    for one, other, at, mark in draw.shuffled(words.SAID_TOGETHER):
        if one in draw.sent and other in draw.sent:
            text = f"{draw.sent[one]}{mark}{draw.sent[other]}"
            yield {**_without(draw, one, other), (one, other)[at]: text}


# Lists and objects


def columns(draw: Draw) -> Iterator[Json]:
    """A list for each field in the place of a list of objects."""
    for name, value in draw.shuffled(draw.sent.items()):
        rows = value if isinstance(value, list) else []
        if rows and all(isinstance(each, dict) and each.keys() == rows[0].keys() for each in rows):
            found = {key: [each[key] for each in rows] for key in rows[0]}
            for of in draw.shuffled((found, {f"{key}s": each for key, each in found.items()})):
                yield draw.valued(name, of)
                if _is_free(draw, *of):
                    yield {**_without(draw, name), **of}


def _with_quantities(name: str, value: Any) -> list[Any]:
    """Items as the objects of an order, one of each."""
    texts = isinstance(value, list) and value and all(map(is_plain, value))
    keys = ((name.removesuffix("s"), "quantity"), ("id", "qty"), ("value", "count"))
    return [[{key: each, many: 1} for each in value] for key, many in keys] if texts else []


def _unquoted(_: str, value: Any) -> list[str]:
    """A list as text in brackets, without quotes."""
    items = value if isinstance(value, list) and value and all(map(is_plain, value)) else []
    hard = any(set(",[]{}()\"'") & set(str(each)) for each in items)
    return [f"[{mark.join(map(str, items))}]" for mark in (",", ", ") if items and not hard]


def _number(value: Any) -> Any:
    """The number of a text of digits that is no other text of the same number."""
    digits = isinstance(value, str) and re.fullmatch(r"[1-9]\d{0,14}", value)
    return int(value) if digits else value


# Values


def units(draw: Draw) -> Iterator[Json]:
    """A number with the sign of the unit that the schema names."""

    def forms(name: str, value: Any) -> list[str]:
        about = draw.properties.get(name, {}).get("description", "")
        said = f"{' '.join(lower_words(name))} {about.lower()}"
        found = [each for unit, each in words.UNITS.items() if re.search(rf"\b{unit}\b", said)]
        plain = is_number(value) and not re.search("square|cubic| per |/", said)
        return [form.format(value) for form in found[0]] if plain and len(found) == 1 else []

    return with_value(draw, forms)


def listed_in_short(draw: Draw) -> Iterator[Json]:
    """A listed value without its first word, where no other ends like it."""

    def forms(name: str, value: str) -> list[str]:
        listed, rest = draw.listed(name), lower_words(value)[1:]
        alone = [each for each in listed if lower_words(each)[1:] == rest] == [value]
        short = {"_".join(rest), camel("_".join(rest))} if len("".join(rest)) > 3 else {""}
        return sorted(short - {"", *listed}) if alone else []

    return with_text(draw, forms)


def listed_elsewhere(draw: Draw) -> Iterator[Json]:
    """A listed value as another API calls it."""

    def forms(name: str, value: str) -> list[str]:
        listed = {each.lower() for each in draw.listed(name)} or {value.lower()}
        found = words.LISTED.get(value.lower(), ())
        is_listed = value in draw.listed(name) or name == "reason"
        return [each for each in found if is_listed and each.lower() not in listed]

    return with_text(draw, forms)


def _labelled(name: str, value: str) -> list[str]:
    """A text behind its label, as a listing shows it."""
    label = " ".join(lower_words(name)).capitalize()
    return [f"{label}: {value}", f"{name}={value}", f"{label} - {value}", f"**{label}:** {value}"]


def _titled(name: str, value: Any) -> list[str]:
    """A key with the title of what it is the key of."""
    title = ("Fix the login", "Quarterly report", "Wireless Mouse")[len(str(value)) % 3]
    is_key = names_id(name) and is_plain(value) and len(str(value)) > 2
    forms = ("{} - {}", "{} ({})", "{1} ({0})", "{1} [{0}]")
    return [form.format(value, title) for form in forms] if is_key else []


_PATHS = frozenset(("path", "file", "folder", "dir", "filename", "source"))


def _in_a_sandbox(name: str, value: str) -> list[str]:
    """A file with the folder of another sandbox before it."""
    known = re.fullmatch(r"\w[\w./-]*", value) and not _PATHS.isdisjoint(lower_words(name))
    roots = ("/workspace/", "/home/user/", "sandbox:/mnt/data/", "~/", "/repo/", "/mnt/user-data/")
    return [f"{root}{value}" for root in roots] if known else []


_REFS = {
    "branch base head ref": ("refs/heads/{}", "origin/{}", "heads/{}", "remotes/origin/{}"),
    "sha commit": ("commit {}", "{}^{{commit}}", "sha:{}"), "tag": ("refs/tags/{}", "tags/{}"),
    "owner org user author organization": ("github.com/{}", "users/{}"),
}  # fmt: skip


def _in_full(name: str, value: str) -> list[str]:
    """A branch, a commit or an account as git and its servers write it in full."""
    last = "" if " " in value else lower_words(name)[-1]
    return [each.format(value) for of, forms in _REFS.items() if last in of.split()
            for each in forms]  # fmt: skip


def by_its_kind(draw: Draw) -> Iterator[Json]:
    """An id without its number, where the session knows one such id only."""
    said = json.dumps([[each.parameters, each.result] for each in draw.earlier], default=str)

    def forms(name: str, value: str) -> list[str]:
        found = re.fullmatch(r"([a-z]+(?:_[a-z]+)*)_\d+", value)
        stem = found[1] if found and names_id(name) else "-"
        is_alone = {*re.findall(rf'"({stem}_\d+)"', said)} == {value}
        return [stem, stem.replace("_", " "), stem.title().replace("_", " ")] if is_alone else []

    return with_text(draw, forms)


# What the error says


def moments(draw: Draw) -> Iterator[Made]:
    """A moment in UTC as programs print it."""
    for name, text in draw.shuffled(draw.sent.items()):
        if isinstance(text, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text):
            at = datetime.fromisoformat(text)
            said = f"{name} is not a valid timestamp (UTC, YYYY-MM-DDTHH:MM:SSZ)"
            for new in draw.shuffled(
                (at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S}+00:00", f"{at:%Y-%m-%dT%H:%M:%S}.000Z",
                 f"{at:%Y-%m-%dT%H:%MZ}", f"{at:%Y-%m-%d %H:%M:%S} UTC", str(int(at.timestamp())),
                 f"{at:%B} {at.day}, {at:%Y %I:%M %p} UTC")
            ):  # fmt: skip
                yield fresh.refused_with(draw, draw.valued(name, new), said)


def _american(day: date) -> list[str]:
    """A day as Americans write it, or without zeros."""
    end = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day // 10 != 1 else 0, "th")
    plain = [f"{day:%m/%d/%Y}", f"{day.month}-{day.day}-{day.year}"] if day.day > 12 else []
    short = [f"{day.year}-{day.month}-{day.day}"] if min(day.month, day.day) < 10 else []
    return [f"{day:%B} {day.day}{end}, {day.year}", f"{day.day}{end} of {day:%B} {day.year}",
            f"{day:%a %b} {day.day} {day.year}", *plain, *short]  # fmt: skip


_UNCODED = (
    "Unsupported {0}: '{1}'. Give the name in English, not a code.",
    "{0} must be a full English name",
    "No {0} is called '{1}': codes are not accepted",
)


def codes(draw: Draw) -> Iterator[Made]:
    """The code of a country or a language in the place of its name."""
    for name, value in draw.shuffled(draw.sent.items()):
        for code in draw.shuffled(words.CODES.get(str(value), "").split()):
            said = draw.rng.choice(_UNCODED).format(name, code)
            yield fresh.refused_with(draw, draw.valued(name, code), said)


# Beyond repair


def _start(_: str, value: Any) -> list[str]:
    """The first signs of a long key, as a listing shortens it."""
    return [str(value)[:6]] if re.fullmatch(r"[\w#-]{8,}", str(value)) else []


def _said_of_it(name: str, _: Any) -> list[str]:
    """What people call a thing, in the place of its key."""
    noun = lower_words(name)[0]
    return [f"the main {noun}", f"the {noun} from yesterday", f"my other {noun}", "the blue one"]


def _placeholders(name: str, _: Any) -> list[str]:
    forms = ("YOUR_{}_HERE", "REPLACE_WITH_{}", "<INSERT_{}>", "XXXXXXXX", "TODO", "%{}%")
    return [each.format("_".join(lower_words(name)).upper()) for each in forms]


_FOREIGN = ("usr_8Kd2mQ", "PROJ-4821", "U02AB3CD4", "cus_N7xQ2pL", "6f1d2c3b4a59687786")


def one_for_two(draw: Draw) -> Iterator[Json]:
    """One value under a name that fits two parameters; the other value is gone."""
    for one in draw.shuffled(draw.required):
        for other in draw.required:
            kept, gone = draw.sent[one], draw.sent[other]
            common = "_".join(w for w in lower_words(one) if w in lower_words(other)) or "value"
            alike = one != other and is_plain(gone) and type(kept) is type(gone)
            if alike and _is_free(draw, common) and not is_said(draw, gone):
                yield {**_without(draw, one, other), common: kept}


def contradicted(draw: Draw) -> Iterator[Json]:
    """A name with one value, and its other spelling with another."""
    for name in draw.shuffled(draw.required):
        new = next((each for each in (camel(name), snake(name)) if each != name), f"{name}_value")
        values = [each[name] for each in draw.others if name in each]
        values = [each for each in values if is_plain(each) and each != draw.sent[name]]
        if values and _is_free(draw, new) and is_unsaid_word(draw, name):
            pair = draw.shuffled((draw.sent[name], draw.rng.choice(values)))
            yield {**draw.sent, name: pair[0], new: pair[1]}


def either_of_a_list(draw: Draw) -> Iterator[Json]:
    """Two listed values where one is due."""

    def forms(name: str, value: str) -> list[str]:
        others = [each for each in draw.listed(name) if each != value]
        if value not in draw.listed(name) or not others or is_said(draw, value):
            return []
        pair = draw.shuffled((value, draw.rng.choice(others)))
        return [mark.join(pair) for mark in (" or ", "|", "/")]

    return with_text(draw, forms)


def number_by_word(draw: Draw) -> Iterator[Json]:
    """A word for which number."""
    which = ("next", "last", "half", "n", "same as last time", "the usual", "the right one")
    return with_value(draw, lambda _, v: which if is_number(v) and not is_said(draw, v) else ())


def impossible_days(draw: Draw) -> Iterator[Made]:
    """A day that no calendar has."""

    def forms(day: date) -> list[str]:
        unsaid = not is_said(draw, day) and not is_said(draw, f"{day:%B}")
        ends = ("02-30", f"13-{day.day:02}", "00-00", "04-31")
        return [f"{day.year}-{end}" for end in ends if unsaid]

    return fresh.each_day(draw, forms)


def all_for_a_list(draw: Draw) -> Iterator[Json]:
    """A word for all of them, in the place of some that nobody stated."""

    def forms(name: str, value: Any) -> list[Any]:
        known = not isinstance(value, list) or draw.listed(name)
        unsaid = not known and not any(is_said(draw, each) for each in value)
        return ["all", ["all"], f"all {name}", "everything relevant", ["*"]] if unsaid else []

    return with_value(draw, forms)


def for_a_sibling(draw: Draw) -> Iterator[Json]:
    """A sibling's arguments, of which this tool has some but not all that it needs."""
    for other in reversed(draw.earlier):
        given = other.parameters.keys()
        whole = {*draw.schema.get("required", ())} <= given
        mixed = given & draw.properties.keys() and given - draw.properties.keys()
        if other.tool != draw.call.tool and mixed and not whole:
            yield other.parameters


NAMES: Mapping[str, Sent] = {
    "another vendor's name": partial(renamed, forms=lambda name: words.VENDORS.get(name, ())),
    "a sibling tool's name": partial(renamed, forms=lambda name: words.SIBLINGS.get(name, ())),
    "a word more": partial(renamed, forms=_more_words), "a word less": partial(renamed, forms=
    _fewer_words), "dashes in names": kebab, "pair of another API": pairs, "other English":
    partial(renamed, forms=lambda name: [re.sub(*each, name) for each in words.BRITISH]),
    "tool before the names": lambda draw: fresh.all_named(
        draw, *(f"{draw.call.tool}{mark}{{}}" for mark in (".", "__", "_", "/", ":"))),
}  # fmt: skip
AROUND: Mapping[str, Sent] = {
    "options of other tools": partial(more, options=words.EXTRAS), "a harness's own":
    partial(more, options=words.OF_HARNESSES), "call within the call": call_within_the_call,
    "body beside the path": body_beside, "call in its first parameter": in_its_first,
}  # fmt: skip
VALUES: Mapping[str, Sent] = {
    "sign of the unit": units, "list without quotes": partial(with_value, form=_unquoted),
    "number for digits": partial(with_value, form=lambda _, value: [_number(value)]),
    "listed value in short": listed_in_short, "listed value of another API": listed_elsewhere,
    "columns for rows": columns, "names of others inside": names_inside, "items with quantities":
    partial(with_value, form=_with_quantities), "arguments run together": run_together,
    "two values under one name": two_under_one,
}  # fmt: skip
LOOKED_UP: Mapping[str, Sent] = {
    "key with its title": partial(with_value, form=_titled), "path of a sandbox":
    partial(with_text, form=_in_a_sandbox), "reference in full": partial(with_text, form=_in_full),
    "id by its kind": by_its_kind, "label before a text": partial(with_text, form=_labelled),
    "fence around a text": formed("```\n{}\n```", "```text\n{}\n```", "~~~\n{}\n~~~", "``{}``"),
    "escape beside a text": formed("{}\\n", "{}\\r\\n", "\\t{}", "{}\\u0000"), "lone quote":
    formed('"{}', "{}'", '{}"', '{}",', "`{}"),
    "quotes with backslashes": formed('\\"{}\\"', "\\'{}\\'", '"\\"{}\\""', '\\\\"{}\\\\"'),
}  # fmt: skip
WITH_ERRORS: Mapping[str, Maker] = {
    "moment of a program": moments, "code for a name": codes, "American day":
    partial(fresh.each_day, form=lambda day: _american(day) if day.year > 1900 else ()),
}  # fmt: skip
BEYOND_BY_SCHEMA: Mapping[str, Sent] = {
    "one name for two": one_for_two, "contradiction of two spellings": contradicted,
    "either of a list": either_of_a_list, "number by a word": number_by_word, "all for a list":
    all_for_a_list, "for a sibling": for_a_sibling, "filter that the tool lacks":
    partial(more, options=words.FILTERS),
}  # fmt: skip
BEYOND: Mapping[str, Maker] = {
    "start of a key": partial(unknown_key, texts=_start), "words for a key":
    partial(unknown_key, texts=_said_of_it), "placeholder of a manual":
    partial(unknown_key, texts=_placeholders), "key of another system":
    partial(unknown_key, texts=lambda name, _: _FOREIGN if names_id(name) else ()),
    "impossible day": impossible_days,
}  # fmt: skip
_OF_VALUES = (*tuple(VALUES)[:5], *tuple(LOOKED_UP)[:4])
TOGETHER: Mapping[str, Sequence[Sequence[str]]] = {
    "a value and a name": (_OF_VALUES, tuple(NAMES)), "a name and what is around":
    (tuple(NAMES), tuple(AROUND)), "an option more and a value": (_OF_VALUES, tuple(AROUND)[:2]),
}  # fmt: skip

SIXTH = Batch(
    "sixth", VOICES, {**NAMES, **AROUND, **VALUES}, LOOKED_UP, WITH_ERRORS, BEYOND,
    BEYOND_BY_SCHEMA, TOGETHER, "What models send when they take a tool for another one: names, "
    "values and options of other vendors, harnesses and versions, what a framework or a broken "
    "stream makes of a call, and twelve kinds that hold no right repair: written without a look at "
    "what mends them, and fitted on only after it was measured at first sight.",
)  # fmt: skip
