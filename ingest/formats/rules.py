"""The rules by which calls and results are found in JSON of any form. Pure.

`forms.toml` states what they are; here they are read, and matched against objects.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from aftercall.extensions import load_tables, use_each
from aftercall.json_values import json_or_none

_MAX_TEXT = 16 * 1024 * 1024
"""Characters of a text that is looked into as JSON."""
_CONDITION = re.compile(r"(!?)((?:@?[^=~:!]|:(?!object|list|text))+)(!=|=|~|:)?(.*)", re.DOTALL)
_STREAMED = re.compile(r"^data: ?(\{.*)$", re.MULTILINE)
"""The JSON of a server-sent event."""
_TYPES: dict[str, type] = {"object": dict, "list": list, "text": str}
_OF_OTLP = ("stringValue", "intValue", "doubleValue", "boolValue")


@dataclass(frozen=True, slots=True)
class _Way:
    """One alternative of a path."""

    steps: tuple[str, ...]
    group: re.Pattern[str] | None = None
    literal: str | None = None

    def value_in(self, held: object) -> Any:
        if self.literal is not None:
            return self.literal
        for step in self.steps:
            held = _take_step(held, step)
            if held is None:
                return None
        if self.group is None:
            return held
        if not isinstance(held, str):
            return None
        match = self.group.search(held)
        if match is None:
            return None
        return match[1] if match.re.groups else match[0]


Path: TypeAlias = tuple[_Way, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """What a rule asks of an object, such as `a/b=word`."""

    path: Path
    negated: bool
    sign: str
    said: str
    pattern: re.Pattern[str] | None
    words: tuple[str, ...]
    """What is stated, in its alternatives."""
    key: str | None
    """The member of an object that it is about, if the path is no more than that."""

    def is_met(self, value: object) -> bool:
        """Return whether an object is so."""
        if self.key is not None and isinstance(value, dict):
            held = value.get(self.key)
        else:
            held = first_value_at(value, self.path)
        if self.sign in ("=", "!="):
            is_one = held is not None and _as_word(held) in self.words
            return is_one if self.sign == "=" else held is not None and not is_one
        if self.pattern is not None:
            return isinstance(held, str) and self.pattern.search(held) is not None
        if self.sign == ":":
            return isinstance(held, _TYPES[self.said])
        return (held is None) is self.negated


@dataclass(frozen=True, slots=True)
class Rule:
    """How a call, a result, both, or what is stated of those inside is read from an object."""

    form: str
    conditions: tuple[Condition, ...]
    failed: tuple[Condition, ...] = ()
    name: Path = ()
    id: Path = ()
    of: Path = ()
    """The tool whose call a result answers, where there is no id."""
    server: Path = ()
    arguments: Path = ()
    elements: Path = ()
    """Arguments as the elements of XML."""
    text: Path = ()
    """The one argument of a tool that takes a text."""
    fields: tuple[str, ...] = ()
    """Members that are the arguments."""
    content: Path = ()
    error: Path = ()
    at: Path = ()
    user: Path = ()
    session: Path = ()
    thread: Path = ()
    spoken: Path = ()
    """The agent."""
    each: Path = ()
    only: Path = ()
    """What a member has to have, with `each`."""
    agent: str | None = None
    unique: bool = False
    ordered: bool = False
    deep: bool = False
    open: bool = False
    ignored: bool = False

    @property
    def is_call(self) -> bool:
        """Return whether it reads a call."""
        return bool(self.name)

    @property
    def is_result(self) -> bool:
        """Return whether it reads a result, of its own call or of another."""
        return bool(self.content or self.error) and not self.open

    @property
    def is_mark(self) -> bool:
        """Return whether it only states that a call failed, whose result stands elsewhere."""
        return bool(self.failed) and not (self.is_call or self.is_result)


@dataclass(frozen=True, slots=True)
class _Text:
    form: str
    marker: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Forms:
    """All rules."""

    titles: dict[str, str]
    rules: tuple[Rule, ...]
    texts: tuple[_Text, ...]
    split: frozenset[str]
    """Forms that name tools `server__tool`."""
    lists: frozenset[str]
    skipped: frozenset[str]
    sessions: tuple[Path, ...]
    requests: tuple[Path, ...]
    agents: tuple[Path, ...]
    models: tuple[Path, ...]
    times: tuple[Path, ...]
    places: dict[tuple[str, str | None], tuple[int, ...]] = field(default_factory=dict)
    """Places of rules by a member that each needs, and its text where it needs a certain one."""
    _last: list[tuple[dict[str, Any], Rule | None]] = field(default_factory=list, init=False)
    """The object that was asked of last: the walk asks several times of each."""

    def rule_of(self, value: dict[str, Any]) -> Rule | None:
        """Return the first rule that fits an object."""
        for asked, rule in self._last:
            if asked is value:
                return rule
        rule = self._find_rule(value)
        self._last[:] = [(value, rule)]
        return rule

    def _find_rule(self, value: dict[str, Any]) -> Rule | None:
        places: list[int] = []
        for key, held in value.items():
            places += self.places.get((key, None), ())
            if isinstance(held, str):
                places += self.places.get((key, held), ())
        for place in sorted(places):
            if all(condition.is_met(value) for condition in self.rules[place].conditions):
                return self.rules[place]
        return None

    def objects_in(self, text: str, role: object) -> Iterator[dict[str, Any]]:
        """Yield what the patterns for texts find in one, in its order."""
        found = []
        for each in self.texts:
            if each.marker not in text or len(text) > _MAX_TEXT:
                continue
            for match in each.pattern.finditer(text):
                groups = {key: held for key, held in match.groupdict().items() if held is not None}
                found.append((match.start(), {"@form": each.form, "@role": role, **groups}))
        for _, value in sorted(found, key=lambda pair: pair[0]):
            yield value


def first_value_at(value: object, path: Path) -> Any:
    """Return the first of the alternatives that is there; None for none."""
    return next((held for way in path if (held := way.value_in(value)) is not None), None)


def first_at(value: dict[str, Any], paths: tuple[Path, ...], kinds: tuple[type, ...]) -> Any:
    """Return the first value of one of the types at the paths; no boolean, no empty text."""
    for path in paths:
        if path[0].steps[0] not in value:
            continue
        held = first_value_at(value, path)
        if isinstance(held, kinds) and not isinstance(held, bool) and held != "":
            return held
    return None


@cache
def read_forms() -> Forms:
    """Return the rules of `forms.toml` and of plug-ins, whose forms may replace one of its."""
    table = tomllib.loads((files("ingest.formats") / "forms.toml").read_text(encoding="utf-8"))
    common = {key: table.pop(key) for key in list(table) if isinstance(table[key], list)}

    def add(added: dict[str, Any]) -> None:
        for form, described in added.items():
            for each in described["rules"]:
                _needed_members(_make_rule(form, each).conditions)
            for each in described.get("texts", ()):
                re.compile(each["pattern"])
        table.update(added)

    use_each("log_forms", load_tables("log_forms"), add)
    rules: list[Rule] = []
    texts: list[_Text] = []
    for form, described in table.items():
        defaults = {key: described[key] for key in ("agent", "unique") if key in described}
        rules += (_make_rule(form, defaults | each) for each in described["rules"])
        texts += (
            _Text(form, each["marker"], re.compile(each["pattern"]))
            for each in described.get("texts", ())
        )
    places: dict[tuple[str, str | None], list[int]] = {}
    for place, rule in enumerate(rules):
        for needed in _needed_members(rule.conditions):
            places.setdefault(needed, []).append(place)
    return Forms(
        titles={form: described["title"] for form, described in table.items()},
        rules=tuple(rules),
        texts=tuple(texts),
        split=frozenset(form for form, described in table.items() if described.get("split")),
        lists=frozenset(common["lists"]),
        skipped=frozenset(common["skipped"]),
        **{
            key: tuple(read_path(each) for each in common[key])
            for key in ("sessions", "requests", "agents", "models", "times")
        },
        places={key: tuple(held) for key, held in places.items()},
    )


def _needed_members(conditions: tuple[Condition, ...]) -> set[tuple[str, str | None]]:
    """Return the members that an object needs one of, for the rule to fit."""
    plain = [each for each in conditions if not each.negated and each.sign != "!="]
    for each in plain:
        steps = {way.steps for way in each.path}
        if each.sign == "=" and len(steps) == 1 and len(each.path[0].steps) == 1:
            words = each.said.split("|")
            if not {"true", "false"} & set(words) and not any(map(str.isdecimal, words)):
                return {(each.path[0].steps[0], word) for word in words}
    rarest = min(plain, key=lambda each: each.path[0].steps[0] in _COMMON)
    return {(way.steps[0], None) for way in rarest.path}


_COMMON = frozenset({"id", "name", "type", "role", "content", "status", "error", "output"})
"""Members of too many objects to look for rules by them."""
_PLAIN = {"agent", "unique", "ordered", "deep", "open", "ignored"}


def _make_rule(form: str, told: Mapping[str, Any]) -> Rule:
    known = {each.name for each in fields(Rule)} | {"when"}
    if unknown := told.keys() - known:
        raise ValueError(f"forms.toml, {form}: unknown {', '.join(sorted(unknown))}")
    made: dict[str, Any] = {"form": form}
    for key, value in told.items():
        if key == "when":
            made["conditions"] = tuple(read_condition(each) for each in value.split(" & "))
        elif key == "failed":
            made[key] = tuple(read_condition(each) for each in value)
        elif key == "fields":
            made[key] = tuple(value)
        else:
            made[key] = value if key in _PLAIN else read_path(value)
    return Rule(**made)


def read_condition(text: str) -> Condition:
    """Return the condition that a text of `forms.toml` or of a client of hooks writes."""
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"forms.toml: no condition: {text}")
    negated, path, sign, said = match.groups()
    pattern = re.compile(said) if sign == "~" else None
    ways = read_path(path)
    return Condition(
        ways, bool(negated), sign or "", said, pattern, tuple(said.split("|")), _only_member(ways)
    )


def _only_member(path: Path) -> str | None:
    """Return the member that a path takes of an object, if it does nothing else."""
    way = path[0]
    if len(path) > 1 or len(way.steps) != 1 or way.group is not None:
        return None
    return None if way.steps[0] in ("*", "@key") else way.steps[0]


def read_path(text: str) -> Path:
    """Return the path that such a text writes."""
    ways, rest = [], text
    while rest:
        # A regex goes to the end: it may hold the sign for alternatives.
        plain, mark, pattern = rest.partition("~")
        first, bar, others = plain.partition("|")
        if bar:
            ways.append(_make_way(first, None))
            rest = others + mark + pattern
        else:
            ways.append(_make_way(plain, re.compile(pattern) if mark else None))
            rest = ""
    return tuple(ways)


def _make_way(text: str, group: re.Pattern[str] | None) -> _Way:
    if text.startswith("="):
        return _Way((), None, text[1:])
    return _Way(tuple(text.split("/")), group)


def _take_step(held: object, step: str) -> object:
    if isinstance(held, str):
        held = object_in_text(held)
    if isinstance(held, dict):
        if step == "*":
            return next(iter(held.values()), None)
        return next(iter(held), None) if step == "@key" else held.get(step)
    if isinstance(held, list):
        if step == "*" or step.isdecimal():
            place = 0 if step == "*" else int(step)
            return held[place] if place < len(held) else None
        for each in held:  # attributes of spans
            if isinstance(each, dict) and each.get("key") == step:
                return _attribute_value(each.get("value"))
    return None


def _attribute_value(value: object) -> object:
    if isinstance(value, dict):
        return next((value[key] for key in _OF_OTLP if key in value), value)
    return value


def object_in_text(text: str) -> object:
    """Return the object or list whose JSON a text is, or that a server-sent event carries.

    Else None.
    """
    bare = text.strip() if len(text) <= _MAX_TEXT else ""
    if bare.startswith(("event:", "data:")) and (streamed := _STREAMED.findall(bare)):
        bare = streamed[-1]
    return json_or_none(bare) if bare.startswith(("{", "[")) else None


def _as_word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
