"""A fourth batch of mistakes, in yet other voices.

What is left of the way that a value took: of a terminal, a list, a stream of tokens, a template;
a value that was reckoned, taken apart or laid out otherwise; names that a hand slipped on. By a
hash of its name a half of the kinds, and of the voices, is kept, and measured on other tools.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bench.quality import kinds_fresh as fresh
from bench.quality.kinds_damage import Draw, Made, Maker
from bench.quality.kinds_fresh import Sent, T, is_number, is_plain, under, with_text, with_value
from bench.quality.kinds_words import joined_as, words_of
from bench.quality.trial import Json
from bench.quality.voices_wild import VOICES, Voice


def formed(*forms: str) -> Sent:
    """Makes one value a text of these forms; `name` and `noun` say what it is."""

    def texts(name: str, value: Any) -> list[str]:
        noun = (words_of(name) or [name])[0].lower()
        held = is_plain(value) and not isinstance(value, bool)
        return [form.format(value, name=name, noun=noun) for form in forms] if held else []

    return partial(with_value, form=texts)


def _moved(draw: Draw, name: str, new: str, value: Any) -> Iterator[Json]:
    """The call with another name and value in the place of one."""
    if new not in draw.properties and new not in draw.sent:
        yield {**{key: each for key, each in draw.sent.items() if key != name}, new: value}


# Names


def renamed(draw: Draw, forms: Callable[[str], Sequence[str]]) -> Iterator[Json]:
    """One name in one of its forms."""
    for name in draw.shuffled(draw.sent):
        for new in draw.shuffled(forms(name)):
            if new != name and (sent := draw.renamed({name: new})):
                yield sent


def slips(draw: Draw) -> Iterator[Json]:
    """A name with a slip of the hand."""

    def forms(name: str) -> list[str]:
        at = draw.rng.randint(1, max(1, len(name) - 3))
        return [name[:at] + name[at + 1] + name[at] + name[at + 2:], name[:at] + name[at + 1:],
                name[:at] + name[at] + name[at:]] if len(name) > 3 else []  # fmt: skip

    return renamed(draw, forms)


def turned_round(draw: Draw) -> Iterator[Json]:
    """The words of a name in another order."""

    def forms(name: str) -> list[str]:
        first, *rest = words_of(name) or [name]
        turned = [[*rest, first], [*rest, "of", first], [*rest, "for", first]]
        return [joined_as(name, each) for each in turned] if rest else []

    return renamed(draw, forms)


def negated(draw: Draw) -> Iterator[Json]:
    """A flag's opposite under its opposite's name."""
    for name in draw.shuffled(draw.sent):
        if isinstance(draw.sent[name], bool):
            for word in draw.shuffled(("no", "not", "disable")):
                new = joined_as(name, [word, *words_of(name)])
                yield from _moved(draw, name, new, not draw.sent[name])


def value_in_the_name(draw: Draw) -> Iterator[Json]:
    """An assignment as a name."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        if is_plain(value) and not isinstance(value, bool):
            for empty in draw.shuffled(("", True, None)):
                yield from _moved(draw, name, f"{name}={value}", empty)


# Values


def places(draw: Draw) -> Iterator[Json]:
    """The first of the listed values as 0, the last as their number."""
    for name in draw.shuffled(draw.sent):
        of = {each: at for at, each in enumerate(draw.listed(name))}
        value = draw.sent[name] if isinstance(draw.sent[name], str) else None
        if value in of and len(of) > 1 and of[value] in (0, len(of) - 1):
            yield draw.valued(name, of[value] and len(of))


_FINER = {"hour": (60, "minutes"), "minute": (60, "seconds"), "day": (24, "hours"),
          "week": (7, "days"), "meter": (100, "cm"), "kilometer": (1000, "m"), "gram": (1000, "mg"),
          "kilogram": (1000, "g"), "liter": (1000, "ml"), "second": (1000, "ms"),
          "year": (12, "months"), "watt": (0.001, "kW")}  # fmt: skip
_SPANS = {"hour": "PT{}H", "minute": "PT{}M", "second": "PT{}S", "day": "P{}D", "week": "P{}W",
          "year": "P{}Y", "month": "P{}M"}  # fmt: skip


def _unit(draw: Draw, name: str) -> str:
    said = f"{' '.join(words_of(name))} {draw.properties.get(name, {}).get('description', '')}"
    found = re.findall(rf"\b({'|'.join([*_FINER, 'month'])})s\b", said.lower())
    plain = len(set(found)) == 1 and not re.search("square|cubic| per ", said.lower())
    return found[0] if plain else ""


def converted(draw: Draw) -> Iterator[Json]:
    """A number in another unit than the one that the schema names, or as a span of ISO 8601."""

    def forms(name: str, value: Any) -> list[str]:
        unit = _unit(draw, name)
        if not is_number(value) or len(str(value)) > 6:
            return []
        factor, finer = _FINER.get(unit, (0, ""))
        span = [_SPANS[unit].format(value)] if unit in _SPANS and isinstance(value, int) else []
        return [*span, *([f"{value * factor:.10g} {finer}"] if finer else [])]

    return with_value(draw, forms)


def reckoned(draw: Draw) -> Iterator[Json]:
    """What a number was reckoned from."""

    def forms(_: str, value: Any) -> list[str]:
        if isinstance(value, float) and len(str(value)) < 6:
            return [f"{value * 2:.10g} / 2", f"{value * 10:.10g}/10"]
        if not isinstance(value, int) or isinstance(value, bool) or value < 4:
            return []
        by = next((each for each in (5, 3, 2) if value % each == 0), 0)
        return [f"{value - 3} + 3", f"{value // by} * {by}" if by else f"2*{value // 2}+1"]

    return with_value(draw, forms)


def escaped(draw: Draw) -> Iterator[Json]:
    """A backslash before a mark, as Markdown and JSON may have it."""
    return with_text(draw, lambda _, v: [v.replace(mark, f"\\{mark}") for mark in "_/#-."])


def doubled(draw: Draw) -> Iterator[Json]:
    """What a stream says twice when its pieces are joined: a value or a name."""
    yield from with_text(draw, lambda _, v: [2 * v] if 2 < len(v) < 40 else ())
    yield from renamed(draw, lambda name: [2 * name])


def letters(draw: Draw) -> Iterator[Json]:
    """A text as its letters, since a program took it for a list or an object."""

    def forms(_: str, value: str) -> list[Any]:
        spread = {str(at): each for at, each in enumerate(value)}
        return [list(value), spread] if 2 < len(value) < 30 else []

    return with_text(draw, forms)


def lines(draw: Draw) -> Iterator[Made]:
    """A text of two lines as a list of its lines."""
    for name in ("content", "body", "message", "description", "comment", "resolution"):
        first, _, rest = str(draw.sent.get(name, "")).partition(" ")
        if first and rest:
            yield Made(draw.valued(name, [first, rest]), gold=draw.valued(name, f"{first}\n{rest}"))


def days_in_parts(draw: Draw) -> Iterator[Json]:
    """A day as its year, month and day."""

    def forms(_: str, text: str) -> list[Any]:
        day = fresh.day_of(text) if len(text) == 10 and "-" in text else None
        parts = [day.year, day.month, day.day] if day else []
        keyed = [dict(zip(keys, parts, strict=False)) for keys in (("year", "month", "day"), "ymd")]
        return [parts, *keyed] if day else []

    return with_text(draw, forms)


def file_in_two(draw: Draw) -> Iterator[Json]:
    """A file's folder or ending in a parameter of its own."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        if isinstance(value, str) and re.fullmatch(r"[\w/-]+\.\w{2,4}", value):
            folder, _, file = value.rpartition("/")
            stem, _, ending = value.rpartition(".")
            if folder and not {"directory", "folder"} & draw.properties.keys():
                yield {**draw.valued(name, file), draw.rng.choice(("directory", "folder")): folder}
            elif not folder and not {"extension", "ext"} & draw.properties.keys():
                yield {**draw.valued(name, stem), draw.rng.choice(("extension", "ext")): ending}


def as_before(draw: Draw) -> Iterator[Json]:
    """Words for the value that the session's calls had all along."""
    for name in draw.shuffled(draw.sent):
        before = [each.parameters[name] for each in draw.earlier if name in each.parameters]
        if before and all(each == draw.sent[name] for each in before):
            for word in draw.shuffled(("same as before", "unchanged", "same", "(as above)")):
                yield draw.valued(name, word)


def records(draw: Draw) -> Iterator[Json]:
    """The whole record in the place of the field of it that is due."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        made = {"created_at": "2026-01-05T09:00:00Z", "status": "active", "rank": 3, name: value}
        real = [each.result for each in draw.earlier
                if isinstance(each.result, dict) and each.result.get(name) == value]  # fmt: skip
        if is_plain(value):
            yield draw.valued(name, (real or [made])[-1])
            yield draw.valued(name, [made])


# Lists and shapes


def nothing_among(draw: Draw) -> Iterator[Json]:
    """Nothing as an item."""
    return with_value(
        draw, lambda _, v: [[*v, None], [None, *v], [*v, ""]] if isinstance(v, list) else ()
    )


def item_twice(draw: Draw) -> Iterator[Made]:
    """An item once more."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        if isinstance(value, list) and value:
            said = f"{name} must not contain duplicates: {json.dumps(value[0])}"
            yield fresh.refused_with(draw, draw.valued(name, [*value, value[0]]), said)


def shell(draw: Draw) -> Iterator[Json]:
    """The call as a request that a program would send."""
    url, body = f"https://api.example.com/v1/{draw.call.tool}", json.dumps(draw.sent)
    head = "Content-Type: application/json"
    for form in draw.shuffled(
        (f"curl -X POST {url} -H '{head}' -d {shlex.quote(body)}",
         f"POST /v1/{draw.call.tool} HTTP/1.1\nHost: api.example.com\n{head}\n\n{body}",
         f"fetch('{url}', {{method: 'POST', body: JSON.stringify({body})}})")
    ):  # fmt: skip
        yield from under(draw, form, "command", "request", "curl", "http")


def sentence(draw: Draw) -> Iterator[Json]:
    """The call in words."""
    said = [f"{name} is {value}" for name, value in draw.sent.items()]
    hard = (not is_plain(v) or re.search(r",|\.$| and | is ", str(v)) for v in draw.sent.values())
    if len(said) > 1 and not any(hard):
        for text in (" and ".join(said), f"{', '.join(said[:-1])} and {said[-1]}."):
            yield from under(draw, text, "query", "instruction", "request", "prompt")


# Beyond repair


def goes_on(draw: Draw) -> Iterator[Made]:
    """The first items, and that there are more."""
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        if isinstance(value, list) and len(value) > 1 and str(value[-1]) not in draw.call.context:
            more = draw.rng.choice(("...", "etc.", "\u2026"))
            yield fresh.refused_with(draw, draw.valued(name, [value[0], more]), f"No such {name}")


def rounded(draw: Draw) -> Iterator[Made]:
    """A long number as a table shows it."""
    return fresh.unknown(
        draw, lambda _, v: [f"{float(v):.2E}"] if re.fullmatch(r"\d{5,}[1-9]", str(v)) else ()
    )


_PRINTED = ("[object Object]", "<{} object at 0x7f3a2c1d90>", "Promise {{ <pending> }}")
_ASKED = ("Which {} should I use?", "Please provide the {}.", "I don't know the {}")


def instead(forms: Sequence[str]) -> Maker:
    """Makes a value that nobody stated one of these texts."""
    return partial(fresh.unknown, texts=lambda name, _: [form.format(name) for form in forms])


IS_KEY = frozenset(("id", "ids", "sha", "owner", "repo", "path", "file", "branch", "user", "org",
                     "username", "author", "name", "email", "code", "date"))  # fmt: skip


def _looked_up(make: Sent, chosen: Sequence[Voice]) -> Maker:
    def made(draw: Draw) -> Iterator[Made]:
        for one in fresh.refused(make, chosen)(draw):
            name = next((each for each in one.sent if one.sent[each] != draw.sent.get(each)), "")
            is_key = name in draw.sent and IS_KEY & {word.lower() for word in words_of(name)}
            if one.error is None and is_key and not fresh.speaks_for_itself(draw):
                said = f"{name} not found: {one.sent[name]}"
                one = replace(one, error={"type": "ToolError", "message": said})  # noqa: PLW2901
            yield one

    return made


def one_of_each(groups: Sequence[Sequence[Sent]]) -> Sent:
    """One mistake of each group in one call, each done to what the one before made."""

    def made(draw: Draw) -> Iterator[Json]:
        for _ in range(4):
            now = draw
            for group in groups:
                found = (sent for make in draw.shuffled(group) for sent in make(now))
                sent = next((each for each in found if each != now.sent), None)
                if sent is None:
                    break
                now = replace(now, call=replace(now.call, parameters=sent))
            else:
                yield now.sent

    return made


@dataclass(frozen=True, slots=True)
class Batch:
    """Kinds and voices that are dealt in two halves: one is developed on, the other is kept."""

    name: str
    voices: Mapping[str, Voice]
    kinds: Mapping[str, Sent]
    """What a server refuses by its schema, in one of the voices."""
    looked_up: Mapping[str, Sent]
    """Those of texts, which a server that takes any text looks up in vain."""
    with_errors: Mapping[str, Maker]
    """Those that bring their own errors."""
    beyond: Mapping[str, Maker]
    """Those that hold no right repair, with their own errors."""
    beyond_by_schema: Mapping[str, Sent] = field(default_factory=dict)
    """The same, refused by the schema in one of the voices."""
    together: Mapping[str, Sequence[Iterable[str]]] = field(default_factory=dict)
    """Groups of kinds: one of each group is done to one call, one after the other."""
    about: str = ""
    """What is in it, for the page of its figures."""

    def names(self, *, kept: bool) -> tuple[str, str]:
        """The families of a half: of what can be repaired, and of what cannot."""
        end = ", kept" if kept else ""
        return f"{self.name}{end}", f"{self.name} beyond repair{end}"

    def makers(self, *, kept: bool) -> dict[str, dict[str, Maker]]:
        """The kinds of a half, by family."""
        both = (self.families(kept=kept), self.beyond_repair(kept=kept))
        return dict(zip(self.names(kept=kept), both, strict=True))

    def half_of(self, items: Mapping[str, T], *, kept: bool) -> dict[str, T]:
        """Every other one by the order of their names' hashes."""
        dealt = sorted(
            items, key=lambda one: hashlib.sha256(f"{self.name}/{one}".encode()).digest()
        )
        return {one: items[one] for one in dealt[kept::2]}

    def _chosen(self, *, kept: bool) -> tuple[Voice, ...]:
        return tuple(self.half_of(self.voices, kept=kept).values())

    def families(self, *, kept: bool) -> dict[str, Maker]:
        """The kinds of a half that can be repaired."""
        chosen, kinds = self._chosen(kept=kept), self.half_of(self.kinds, kept=kept)
        more = self.half_of(self.looked_up, kept=kept)
        mine = {**kinds, **more}
        several = {
            name: one_of_each([[mine[one] for one in group if one in mine] for group in groups])
            for name, groups in self.together.items()
        }
        found = {name: fresh.refused(make, chosen) for name, make in {**kinds, **several}.items()}
        found |= {name: _looked_up(make, chosen) for name, make in more.items()}
        return found | self.half_of(self.with_errors, kept=kept)

    def beyond_repair(self, *, kept: bool) -> dict[str, Maker]:
        """Those that cannot."""
        chosen, kinds = self._chosen(kept=kept), self.half_of(self.beyond_by_schema, kept=kept)
        found = {name: fresh.refused(make, chosen) for name, make in kinds.items()}
        return found | self.half_of(self.beyond, kept=kept)


KINDS: Mapping[str, Sent] = {
    "slip in a name": slips, "name turned round": turned_round, "negated flag": negated,
    "value in the name": value_in_the_name, "place in the list": places, "converted": converted,
    "reckoned": reckoned, "text in letters": letters, "day in parts": days_in_parts,
    "file in two": file_in_two, "nothing among items": nothing_among, "whole record": records,
    "request of a program": shell, "sentence": sentence,
}  # fmt: skip
LOOKED_UP: Mapping[str, Sent] = {
    "escaped marks": escaped, "doubled by a stream": doubled, "same as before": as_before,
    "end of a stream": formed("{}</parameter>", '{}"}}', "{}<|im_end|>", "{}\n</invoke>", "{}</s>",
                               "{}<|eot_id|>"),
    "value in its tag": formed("<{name}>{}</{name}>", "<value>{}</value>", "<![CDATA[{}]]>"),
    "another system's name": formed("gid://acme/{noun}/{}", "urn:acme:{noun}:{}",
                                     "arn:aws:acme:eu-west-1:0417:{noun}/{}"),
    "terminal's colours": formed("\x1b[32m{}\x1b[0m", "\x1b[1m{}\x1b[22m", "[36m{}[0m"),
    "row of a list": formed("- {}", "1. {}", "[x] {}", "> {}", "| {} |"),
    "in a phrase": formed("the {noun} {}", "{noun} named '{}'", "the one called {}"),
}  # fmt: skip
WITH_ERRORS: Mapping[str, Maker] = {"text as lines": lines, "item twice": item_twice}
BEYOND: Mapping[str, Maker] = {
    "list goes on": goes_on, "rounded number": rounded, "printed object": instead(_PRINTED),
    "question": instead(_ASKED),
    "masked": partial(fresh.unknown, texts=lambda _, v: (f"****{str(v)[-2:]}", "[REDACTED]")),
    "wildcard": partial(fresh.unknown, texts=lambda _, v: (f"{str(v)[:2]}*", "*", "%")),
}  # fmt: skip
WILD = Batch(
    "wild", VOICES, KINDS, LOOKED_UP, WITH_ERRORS, BEYOND, about="What terminals, lists, streams "
    "and templates leave of a value, values reckoned, taken apart or laid out otherwise, slips in "
    "names, and six kinds that hold no right repair: written without knowing what can be mended, "
    "and fitted on only after it was measured at first sight.",
)  # fmt: skip
