"""Sentences: what an edit does to a call, in words for an agent."""

from collections.abc import Sequence

from aftercall.json_values import JsonValue, canonical_json
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.values.parameters import Path
from retrieval.knowledge.values.scalars import write_number
from retrieval.knowledge.values.texts import Style

_MAX_VALUE = 80
_STYLES: dict[Style, str] = {
    "lower": "in lower case", "upper": "in capitals", "title": "Like This",
    "capital": "with a capital first", "snake": "like_this", "kebab": "like-this",
    "camel": "likeThis", "pascal": "LikeThis", "spaced": "in separate words",
}  # fmt: skip


def lesson_of(edits: Sequence[ed.Edit], share: str | None = None) -> str:
    """Return the lesson of a repair, with the share of sessions that repaired it so.

    Values as JSON, cut.
    """
    if share is None:
        return " ".join(dict.fromkeys(map(_write_sentence, edits)))
    said = (
        f"{speak_path(each.path)}: {show_json(each.before)} is refused, "
        f"{show_json(each.value)} works."
        if isinstance(each, ed.Replace)
        else _write_sentence(each)
        for each in edits
    )
    return f"{' '.join(said).removesuffix('.')} ({share} sessions)."


_SENTENCES = {
    "clamp": "{place} must be {stated}.",
    "rewrite": "{place}: {words}.",
    "scale": "Multiply {place} by {factor}.",
    "nest": "Put {fields} into {place}{listed}.",
    "flatten": "Replace {place} by what is in it.",
    "remove": "Leave out {place}.",
    "add": "{place} must be given, such as {value}.",
    "cast": "{place} must be of type {to}.",
    "replace": "For {place}, use {value} instead of {before}.",
    "unwrap": "{place} must be the value itself, not a list of it.",
    "respell": "Write {place} {style}.",
    "reformat": "Write {place} in the form {to}.",
    "from_error": "For {place}, use the value that the error states.",
    "from_context": "For {place}, use what the task itself states ({form}).",
    "balance": "Change {place} so that the sum is the total that the error states.",
}
_SENTENCES |= {
    "put": "For {place}, use {value}, whatever was there.",
    "take": "{place} must hold what is now in {source}{forms}.",
    "fill": "{place} must be written as {words}.",
    "pad": "Write {place} {width} characters wide, filled with {sign}.",
    "cut": "{place} must be one part of the text: that number {part} between {mark}.",
    "join": "{place} must be one text, its items joined by {mark}.",
    "split": "{place} must be a list, its text parted at {mark}.",
    "keyed": "{place} must be an object with each `{key}` as a name of its `{value}`.",
    "unkeyed": "{place} must be a list of objects with `{key}` and `{value}`.",
    "named": "{place} must be an object with its `{key}` as the name of its `{value}`.",
    "unnamed": "{place} must be an object that says its only name as `{key}`, beside `{value}`.",
}
_AS_JSON = frozenset({"value", "before", "mark", "sign"})
"""Fields that are data."""


def _write_sentence(edit: ed.Edit) -> str:
    place = speak_path(edit.path)
    if isinstance(edit, ed.Rename):
        around = f" in {speak_path(edit.path[:-1])}" if edit.inside else ""
        return f"The parameter{around} is called `{edit.to}`, not `{edit.path[-1]}`."
    fields = {
        name: show_json(value) if name in _AS_JSON else str(value) for name, value in edit if value
    }
    fields |= _sentence_fields(edit)
    return _SENTENCES[edit.kind].format(place=place, **fields)


def _sentence_fields(edit: ed.Edit) -> dict[str, str]:
    """Return what an edit's sentence states next to its place."""
    match edit:
        case ed.Clamp():
            low = f"at least {write_number(edit.minimum)}" if edit.minimum is not None else ""
            high = f"at most {write_number(edit.maximum)}" if edit.maximum is not None else ""
            return {"stated": " and ".join(filter(None, (low, high))) or "within the stated bounds"}
        case ed.Replace():
            return {"value": show_json(edit.value), "before": show_json(edit.before)}
        case ed.Add() | ed.Put():
            return {"value": show_json(edit.value)}
        case ed.Rewrite():
            at = {"start": "at its beginning", "end": "at its end", "inside": "in it"}[edit.where]
            said = f"instead of {show_json(edit.old)} {at}" if edit.old else f"{at} was missing"
            return {"words": f"{show_json(edit.new)} {said}"}
        case ed.Scale():
            return {"factor": write_number(edit.factor)}
        case ed.Nest():
            fields = ", ".join(f"`{each}`" for each in edit.fields)
            return {"fields": fields, "listed": ", a list of one" if edit.listed else ""}
        case ed.Respell():
            return {"style": _STYLES[edit.style]}
    return _said_of_move(edit)


def _said_of_move(edit: ed.Edit) -> dict[str, str]:
    match edit:
        case ed.Take():
            forms = ", written otherwise" if edit.through else ""
            return {"source": speak_path(edit.source), "forms": forms}
        case ed.Fill():
            said = [
                show_json(part) if isinstance(part, str) else speak_path(part)
                for part in edit.parts
            ]
            return {"words": ", ".join(said)}
        case ed.Cut():
            return {"part": str(edit.part + 1 if edit.part >= 0 else edit.part)}
        case ed.Join():
            return {"mark": show_json(edit.mark)}
    return {}


def speak_path(path: Path) -> str:
    """Return a place in words, names in marks: "`date` of each of `flights`"."""
    words = f"`{path[0]}`"
    for step in path[1:]:
        if step == "*":
            words = f"each of {words}"
        elif step == -1:
            words = f"the last of {words}"
        elif isinstance(step, int):
            words = f"number {step + 1} of {words}"
        else:
            words = f"`{step}` of {words}"
    return words


def show_json(value: JsonValue) -> str:
    """Return a value as JSON, cut."""
    if isinstance(value, str):
        value = value[: _MAX_VALUE + 1]
    text = canonical_json(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."
