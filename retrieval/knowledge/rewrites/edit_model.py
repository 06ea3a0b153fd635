"""The model of an edit: the place of a call's parameters that it is about, and what it may read."""

import operator
from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from aftercall.json_values import JsonObject, JsonValue
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.values.parameters import Path


class EditDoesNotApplyError(ValueError):
    """The call does not have what the edit is about, or nothing states what it needs."""


@dataclass(frozen=True, slots=True)
class ValueSources:
    """What an edit may take a value from, next to the call's own parameters."""

    faults: tuple[Fault, ...] = ()
    context: str | None = None


NO_SOURCES = ValueSources()


@dataclass(frozen=True, slots=True)
class Site:
    """Where an edit is being made: a path, the call as it was, and the sources of values."""

    path: Path
    parameters: JsonObject
    value_sources: ValueSources

    def list_faults(self) -> list[Fault]:
        """Return the faults of this very place first, then those that name no place."""
        faults = self.value_sources.faults
        return [f for f in faults if f.path == self.path] + [f for f in faults if not f.path]


class EditModel(BaseModel):
    """An edit of the value at a place of a call's parameters.

    The place is the top-level parameter `name`, and `inside` it the way further down: keys of
    objects, positions of arrays (-1 is the last), or `*` for every element.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    inside: Path = Field(default=(), exclude_if=operator.not_)

    @property
    def path(self) -> Path:
        """Whole place."""
        return (self.name, *self.inside)

    def at_path(self, path: Path) -> Self:
        """Return the same edit at another place."""
        return self.model_copy(update={"name": str(path[0]), "inside": tuple(path[1:])})

    def under_prefix(self, prefix: Path) -> Self:
        """Return the same edit for the object that the prefix leads to.

        It was made for that object.
        """
        return self.at_path((*prefix, *self.path)) if prefix else self


class ValueEdit(EditModel):
    """An edit that puts another value instead of the one that is there."""

    def change_value(self, value: JsonValue, site: Site) -> JsonValue:
        """Return the new value, of the one that is there (None without one).

        Raises:
            EditDoesNotApplyError: when this value is not what the edit is about, or nothing states
                exactly one.
        """
        raise NotImplementedError
