"""Edits that say the same thing in another form; none of them depends on the tool."""

from typing import Literal

from aftercall.json_values import MAX_INTEGER, JsonValue
from retrieval.edits.base import EditDoesNotApplyError, Site, ValueEdit
from retrieval.edits.texts import MAX_TEXT, Mark, Style, respelt, stripped
from retrieval.formats import rewrite
from retrieval.reading.faults import JsonType
from retrieval.values import CastError, cast, nearest, type_of

Separator = Literal[",", ";", "|", "\n", " "]


class Cast(ValueEdit):
    """Say the same in another JSON type; to `array` wraps or splits."""

    kind: Literal["cast"] = "cast"
    to: JsonType

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The value in that type."""
        if type_of(value) == self.to:
            raise EditDoesNotApplyError(f"{self.place} is of type {self.to} already")
        try:
            return cast(value, self.to)
        except CastError as error:
            raise EditDoesNotApplyError(str(error)) from error


class Wrap(ValueEdit):
    """Make a list of the one value."""

    kind: Literal["wrap"] = "wrap"

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """A list of one; never of what is a list already."""
        if isinstance(value, list) or value is None:
            raise EditDoesNotApplyError(f"{self.place} is nothing to make a list of")
        return [value]


class Unwrap(ValueEdit):
    """Take the one value out of its list."""

    kind: Literal["unwrap"] = "unwrap"

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The only element."""
        if not isinstance(value, list) or len(value) != 1:
            raise EditDoesNotApplyError(f"{self.place} is no list of one")
        return value[0]


class Split(ValueEdit):
    """Make a list of a text's parts, without the spaces around them."""

    kind: Literal["split"] = "split"
    separator: Separator

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The parts."""
        text = _text(self, value)
        parts: list[JsonValue] = [part.strip() for part in text.split(self.separator)]
        if len(parts) < 2 or not all(parts):
            raise EditDoesNotApplyError(f"{self.place} has no parts")
        return parts


class Join(ValueEdit):
    """Make one text of a list of texts."""

    kind: Literal["join"] = "join"
    separator: str

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text."""
        texts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(texts) != len(value) or not texts:
            raise EditDoesNotApplyError(f"{self.place} is no list of texts")
        return self.separator.join(texts)


class Respell(ValueEdit):
    """Write a text in another letter case, or its words with other separators."""

    kind: Literal["respell"] = "respell"
    style: Style

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text in that style."""
        return _other(self, value, respelt(_text(self, value), self.style))


class Strip(ValueEdit):
    """Take something off a text that the tool does not want there."""

    kind: Literal["strip"] = "strip"
    what: Mark

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text without it."""
        return _other(self, value, stripped(_text(self, value), self.what))


class Prefix(ValueEdit):
    """Put a sign (`#`, `@`) or a directory before a text."""

    kind: Literal["prefix"] = "prefix"
    text: str

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The text with it."""
        text = _text(self, value)
        if text.startswith(self.text):
            raise EditDoesNotApplyError(f"{self.place} starts with {self.text} already")
        return self.text + text


class Reformat(ValueEdit):
    """Write a date or time in another form; without `to`, in the one that the error asks for."""

    kind: Literal["reformat"] = "reformat"
    to: str | None = None

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The date or time in that form."""
        text = _text(self, value)
        stated = (fault.expected_format for fault in site.grounds.faults_at(site.path))
        for form in [self.to] if self.to else stated:
            written = rewrite(text, form) if form else None
            if written is not None:
                return _other(self, value, written)
        raise EditDoesNotApplyError(f"nothing says in which form {self.place} is wanted")


class Clamp(ValueEdit):
    """Move a number to the bound it went past; without one, to that which is stated."""

    kind: Literal["clamp"] = "clamp"
    minimum: float | None = None
    maximum: float | None = None

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The bound."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EditDoesNotApplyError(f"{self.place} is no number")
        bounds = [(self.minimum, self.maximum)]
        if bounds == [(None, None)]:
            bounds = [
                (fault.minimum, fault.maximum)
                for fault in site.grounds.faults_at(site.path)
                if fault.kind == "out_of_range" and not fault.of_length and not fault.exclusive
            ]
        for low, high in bounds:
            for limit, beyond in ((low, -1), (high, 1)):
                if limit is not None and (value - limit) * beyond > 0 and abs(limit) <= MAX_INTEGER:
                    return int(limit) if float(limit).is_integer() else limit
        raise EditDoesNotApplyError(f"{self.place} is within what is stated")


class Snap(ValueEdit):
    """Take the nearest of the allowed values that the error or the schema lists."""

    kind: Literal["snap"] = "snap"

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The nearest allowed value, when one is clearly meant."""
        if value is None or isinstance(value, dict | list):
            raise EditDoesNotApplyError(f"{self.place} is no plain value")
        for fault in site.grounds.faults_at(site.path):
            allowed = {
                str(item): item for item in fault.allowed if isinstance(item, str | int | float)
            }
            found = nearest(str(value), list(allowed))
            if found and allowed[found[0]] != value:
                return allowed[found[0]]
        raise EditDoesNotApplyError(f"no allowed value is near that of {self.place}")


def _text(edit: ValueEdit, value: JsonValue) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
        raise EditDoesNotApplyError(f"{edit.place} is no short text")
    return value


def _other(edit: ValueEdit, value: JsonValue, changed: str | None) -> JsonValue:
    if changed is None or changed == value:
        raise EditDoesNotApplyError(f"{edit.place} is written so already")
    return changed
