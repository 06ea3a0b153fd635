"""Edits of which parameters there are, and of one value for another."""

from typing import ClassVar, Literal

from aftercall.json_patch import same_json
from aftercall.json_values import JsonValue
from aftercall.models.base import Json
from retrieval.edits.base import EditDoesNotApplyError, EditModel, Site, ValueEdit


class Rename(EditModel):
    """Move a value to another name in the same object."""

    kind: Literal["rename"] = "rename"
    to: str


class Remove(EditModel):
    """Leave a parameter out."""

    kind: Literal["remove"] = "remove"


class Add(EditModel):
    """Give a missing parameter a value."""

    spreads: ClassVar[bool] = False

    kind: Literal["add"] = "add"
    value: Json


class Replace(ValueEdit):
    """Put one value in the place of another; only for calls that have exactly `before`."""

    kind: Literal["replace"] = "replace"
    before: Json
    value: Json

    def change(self, value: JsonValue, _site: Site) -> JsonValue:
        """The literal value."""
        if not same_json(value, self.before):
            raise EditDoesNotApplyError(f"{self.place} has another value")
        return self.value
