"""What all edits share: the place they are about, and the grounds beside the call's own values."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from aftercall.json_values import JsonObject, JsonValue
from retrieval.reading import Fault
from retrieval.reading.faults import Path

EVERY: Literal["*"] = "*"
"""In a place: every element of an array, or as many of them as the edit applies to."""
MAX_ELEMENTS = 100
"""Elements of an array that an edit of every element looks at; a longer one is data."""


class EditDoesNotApplyError(ValueError):
    """The call does not have what the edit is about, or nothing states what it needs."""


def _nothing_usual(_: Path) -> Sequence[JsonValue]:
    return ()


@dataclass(frozen=True, slots=True)
class Grounds:
    """What an edit may take a value from, beside the call's own parameters.

    `usual` gives the values that are common knowledge of the tool at a place, the most usual first.
    """

    faults: tuple[Fault, ...] = ()
    context: str | None = None
    usual: Callable[[Path], Sequence[JsonValue]] = field(default=_nothing_usual)

    def faults_at(self, path: Path) -> Iterator[Fault]:
        """The faults of this very place first, then those that name no place."""
        yield from (fault for fault in self.faults if fault.path == path)
        yield from (fault for fault in self.faults if not fault.path)


NO_GROUNDS = Grounds()


@dataclass(frozen=True, slots=True)
class Site:
    """Where an edit is being made: a concrete path, the call as it was, and the grounds."""

    path: Path
    parameters: JsonObject
    grounds: Grounds


class EditModel(BaseModel):
    """An edit of the value at a place of a call's parameters.

    The place is the top-level parameter `name`, and `inside` it the way further down: keys of
    objects, positions of arrays (-1 is the last), or `*` for every element.
    """

    model_config = ConfigDict(frozen=True)

    spreads: ClassVar[bool] = True
    """Whether it means the same for every element of an array."""

    name: str
    inside: Path = ()

    @property
    def path(self) -> Path:
        """The whole place."""
        return (self.name, *self.inside)

    def at(self, path: Path) -> Self:
        """The same edit at another place."""
        return self.model_copy(update={"name": str(path[0]), "inside": tuple(path[1:])})

    def under(self, prefix: Path) -> Self:
        """The same edit for the object that the prefix leads to; it was made for that object."""
        return self.at((*prefix, *self.path)) if prefix else self

    @property
    def place(self) -> str:
        """The place as text, such as `flights/*/date`."""
        return "/".join(str(step) for step in self.path)

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Top-level edits stay as short as they are: `inside` is only written when there is one."""
        fields: dict[str, Any] = handler(self)
        if not self.inside:
            fields.pop("inside", None)
        return fields


class ValueEdit(EditModel):
    """An edit that makes another value of the one that is there."""

    def change(self, value: JsonValue, site: Site) -> JsonValue:
        """The new value.

        Raises:
            EditDoesNotApplyError: when this value is not what the edit is about.
        """
        raise NotImplementedError


class SupplyEdit(EditModel):
    """An edit that says where the value is to be taken from, whether or not there is one."""

    spreads: ClassVar[bool] = False

    def supply(self, site: Site) -> JsonValue:
        """The value to put there.

        Raises:
            EditDoesNotApplyError: when nothing states exactly one.
        """
        raise NotImplementedError
