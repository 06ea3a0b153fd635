"""Kinds of damage to the shape of a call, several at once, and calls that none should repair."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from bench.quality.damage import aliases_of
from bench.quality.kinds_damage import Draw, Made, Maker, abbreviations, synonyms, translations
from bench.quality.kinds_words import camel, snake, words_of
from bench.quality.trial import Json

# Structure


def whole(draw: Draw, keys: Sequence[str], form: Callable[[Json], Any]) -> Iterator[Made]:
    if draw.sent:
        for key in draw.shuffled(keys):
            if key not in draw.properties:
                yield Made({key: form(draw.sent)}, key)


def as_kwargs(draw: Draw) -> Iterator[Made]:
    written = ", ".join(f"{name}={value!r}" for name, value in draw.sent.items())
    if draw.sent:
        yield from draw.shuffled(
            (Made({"kwargs": draw.sent}), Made({"kwargs": written}, "written"),
             Made({"args": [], "kwargs": draw.sent}, "with args"))
        )  # fmt: skip


def wrapped_value(draw: Draw) -> Iterator[Made]:
    for name in draw.shuffled(draw.sent):
        value = draw.sent[name]
        for key in draw.shuffled(("value", name, "text" if isinstance(value, str) else "data")):
            if not isinstance(value, dict):
                yield Made(draw.valued(name, {key: value}), f"{name}.{key}")


def _lists_of_objects(draw: Draw) -> Iterator[tuple[str, list[Json]]]:
    for name, value in draw.shuffled(draw.sent.items()):
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            yield name, value


def flat(draw: Draw) -> Iterator[Made]:
    for name, value in _lists_of_objects(draw):
        if len(value) == 1 and not value[0].keys() & draw.sent.keys():
            rest = {key: each for key, each in draw.sent.items() if key != name}
            yield Made({**rest, **value[0]}, name)


def bare_object(draw: Draw) -> Iterator[Made]:
    for name, value in _lists_of_objects(draw):
        if len(value) == 1:
            yield Made(draw.valued(name, value[0]), name)


def too_high(draw: Draw) -> Iterator[Made]:
    holders = [(name, value[0]) for name, value in _lists_of_objects(draw) if len(value) == 1]
    holders += [(name, value) for name, value in draw.sent.items() if isinstance(value, dict)]
    for name, inner in draw.shuffled(holders):
        for key in draw.shuffled(inner):
            if key not in draw.sent and key not in draw.properties:
                left = {other: value for other, value in inner.items() if other != key}
                holder = [left] if isinstance(draw.sent[name], list) else left
                yield Made({**draw.valued(name, holder), key: inner[key]}, f"{name}.{key}")


def too_deep(draw: Draw) -> Iterator[Made]:
    names = draw.shuffled(draw.sent)
    down = names[: max(1, len(names) // 2)]
    kept = {name: value for name, value in draw.sent.items() if name not in down}
    inner = {name: value for name, value in draw.sent.items() if name in down}
    for name, value in _lists_of_objects(draw):
        if name not in down and not value[0].keys() & inner.keys():
            yield Made({**kept, name: [{**value[0], **inner}, *value[1:]]}, name)
    if len(names) > 1:
        for key in draw.shuffled(("options", "config", "details", draw.call.server.lower())):
            if key not in draw.properties:
                yield Made({**kept, key: inner}, key)


def positional(draw: Draw) -> Iterator[Made]:
    order = [name for name in draw.properties if name in draw.sent]
    given = [draw.sent[name] for name in order]
    if given and list(draw.properties)[: len(order)] == order:  # none is left out in between
        for key in draw.shuffled(("args", "arguments", "parameters")):
            if key not in draw.properties:
                yield Made({key: given}, key)


def items_as_text(draw: Draw) -> Iterator[Made]:
    for name, value in _lists_of_objects(draw):
        yield Made(draw.valued(name, [json.dumps(each) for each in value]), name)
    for name, value in draw.sent.items():
        if isinstance(value, dict):
            yield Made(draw.valued(name, json.dumps(value)), name)


def object_for_text(draw: Draw) -> Iterator[Made]:
    """A file of JSON text, whose content is sent as what the text holds."""
    held = {"name": draw.rng.choice(("parser", "web")), "version": draw.rng.randint(1, 9)}
    for name in ("content", "body", "message", "description"):
        if isinstance(draw.sent.get(name), str):
            gold = draw.valued(name, json.dumps(held))
            yield Made(draw.valued(name, held), name, gold)


def map_for_list(draw: Draw) -> Iterator[Made]:
    """`{"a.py": "text"}` where `[{"path": "a.py", "content": "text"}]` is due, and the like."""
    for name, value in _lists_of_objects(draw):
        if all(len(each) == 2 and each.keys() == value[0].keys() for each in value):
            inner = draw.properties.get(name, {}).get("items", {}).get("required", ())
            key, held = sorted(value[0], key=lambda each: (each != "path", each not in inner))
            pairs = {str(each[key]): each[held] for each in value}
            if len(pairs) == len(value):
                yield Made(draw.valued(name, pairs), f"{name} by {key}")


def list_for_map(draw: Draw) -> Iterator[Made]:
    for name, value in draw.shuffled(draw.sent.items()):
        inner = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(inner, dict) and inner:
            pairs: list[Any] = [[key, each] for key, each in inner.items()]
            keyed = [{"key": key, "value": each} for key, each in inner.items()]
            for form in draw.shuffled((pairs, keyed)):
                yield Made(draw.valued(name, [form] if inner is not value else form), name)


# Several at once


def _new_names(draw: Draw, name: str) -> list[str]:
    found = [*synonyms(name), *abbreviations(name), *translations(name), *aliases_of(name)]
    taken = {**draw.properties, **draw.sent}
    return draw.shuffled(each for each in dict.fromkeys(found) if each not in taken)


def two_renamed(draw: Draw) -> Iterator[Made]:
    for _ in range(6):
        names = draw.shuffled(draw.sent)[:2]
        new = [(_new_names(draw, name) or [name])[0] for name in names]
        if len(names) == 2 and len({*names, *new}) == 4:
            renames = dict(zip(names, new, strict=True))
            sent = {renames.get(name, name): value for name, value in draw.sent.items()}
            yield Made(sent, json.dumps(renames))


def _rename_in(draw: Draw, sent: Json, kept: Iterable[str]) -> Json | None:
    for name in draw.shuffled(name for name in draw.sent if name not in kept and name in sent):
        for new in _new_names(draw, name)[:1]:
            return {(new if key == name else key): value for key, value in sent.items()}
    return None


def rename_and(*makers: Maker) -> Maker:
    """A maker of another mistake, with one of the names that are right in it renamed."""

    def made(draw: Draw) -> Iterator[Made]:
        for maker in draw.shuffled(makers):
            for one in maker(draw):
                changed = [key for key, value in one.sent.items() if value != draw.sent.get(key)]
                sent = _rename_in(draw, one.sent, changed)
                if sent is not None:
                    yield Made(sent, one.how)

    return made


def wrapped_and_renamed(draw: Draw) -> Iterator[Made]:
    for one in whole(draw, ("params", "input", "arguments"), lambda sent: sent):
        (key,) = one.sent
        inner = _rename_in(draw, draw.sent, ())
        if inner is not None:
            yield Made({key: inner}, key)


def all_in_other_style(draw: Draw) -> Iterator[Made]:
    for style in (camel, snake, lambda name: "-".join(words_of(name)).lower(),
                  lambda name: "".join(word.title() for word in words_of(name))):  # fmt: skip
        names = {name: style(name) for name in draw.sent}
        changed = sum(old != new for old, new in names.items())
        if changed >= 2 and len(set(names.values())) == len(names):
            yield Made({names[name]: value for name, value in draw.sent.items()})


# Should not be repaired


_PLACEHOLDERS = ("<your {}>", "YOUR_{}_HERE", "{{{{{}}}}}", "[{}]", "TODO", "xxx")
_QUALIFIERS = ("exclude", "except", "without", "skip", "keep", "not")
_IDS = ("id", "ids", "sha", "number", "hash", "key", "password")


def _unstated(draw: Draw) -> list[str]:
    found: list[str] = draw.shuffled(
        name
        for name in draw.required
        if isinstance(draw.sent[name], str | int)
        and not isinstance(draw.sent[name], bool)
        and not draw.listed(name)
        and not draw.is_stated(draw.sent[name])
    )
    return found


def _without(draw: Draw, name: str) -> Json:
    return {key: value for key, value in draw.sent.items() if key != name}


def placeholder(draw: Draw) -> Iterator[Made]:
    for name in _unstated(draw):
        for form in draw.shuffled(_PLACEHOLDERS):
            words = " ".join(words_of(name)).lower()
            words = words.upper().replace(" ", "_") if form.startswith("YOUR") else words
            yield Made(draw.valued(name, form.format(words)), name)


def cut_off(draw: Draw) -> Iterator[Made]:
    text = json.dumps(draw.sent)
    if len(text) < 16:
        return
    cut = text[: draw.rng.randint(len(text) // 2, len(text) - 5)]
    try:
        json.loads(cut)
    except json.JSONDecodeError as error:
        message = f"Failed to parse tool arguments as JSON: {error}"
        said = {"type": "JSONDecodeError", "message": message}
        for key in draw.shuffled(("arguments", "input", "raw")):
            yield Made({key: cut}, key, error=said)


def qualifier(draw: Draw) -> Iterator[Made]:
    for name in _unstated(draw):
        word = draw.rng.choice(_QUALIFIERS)
        if word not in draw.properties:
            yield Made({**_without(draw, name), word: draw.sent[name]}, f"{name} -> {word}")
        if "dryRun" not in draw.properties:
            yield Made({**_without(draw, name), "dryRun": True}, f"{name} -> dryRun")


def missing_id(draw: Draw) -> Iterator[Made]:
    for name in _unstated(draw):
        if words_of(name)[-1].lower() in _IDS:
            yield Made(_without(draw, name), name)
