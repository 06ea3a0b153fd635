"""The union of all edits, and their keys: equal for equal edits."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, TypeAdapter

from retrieval.edits.base import EVERY
from retrieval.edits.forms import (
    Cast,
    Clamp,
    Join,
    Prefix,
    Reformat,
    Respell,
    Snap,
    Split,
    Strip,
    Unwrap,
    Wrap,
)
from retrieval.edits.grounded import Balance, Copy, FromContext, FromError, Usual
from retrieval.edits.structure import Add, Remove, Rename, Replace

Edit = Annotated[
    Rename | Remove | Add | Replace
    | Cast | Wrap | Unwrap | Split | Join | Respell | Strip | Prefix | Reformat | Clamp | Snap
    | FromError | FromContext | Copy | Usual | Balance,
    Field(discriminator="kind"),
]  # fmt: skip

_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)
_OF_A_TOOL = (Rename, Remove, Add, Replace, FromContext, Copy, Usual, Balance)
_MARKS = frozenset("@#")


def edit_key(edits: Iterable[Edit]) -> str:
    """Equal for equal edits in any order; the key under which repairs of one kind are counted."""
    return "\n".join(sorted(edit.model_dump_json() for edit in edits))


def edits_of_key(key: str) -> list[Edit]:
    """The edits that `edit_key` made this key of.

    Raises:
        ValueError: when it is no such key.
    """
    return [_EDIT.validate_json(line) for line in key.split("\n") if line]


def names_of(edit: Edit) -> set[str]:
    """The top-level parameters that an edit changes, takes away or supplies."""
    if isinstance(edit, Rename) and not edit.inside:
        return {edit.name, edit.to}
    return {edit.name}


def touches(edit: Edit, other: Edit) -> bool:
    """Whether two edits are of one place, or one of them of what the other is inside of."""
    return any(_overlap(one, two) for one in _places(edit) for two in _places(other))


def for_any_tool(edit: Edit) -> Edit | None:
    """The edit without its place, when what it does depends on no tool; else None.

    A bound of its own is one tool's; to keep to the stated bound is anybody's.
    """
    if isinstance(edit, _OF_A_TOOL) or (isinstance(edit, Prefix) and edit.text not in _MARKS):
        return None
    if isinstance(edit, Clamp):
        return Clamp(name=EVERY)
    return edit.at((EVERY,))


def _places(edit: Edit) -> list[tuple[str | int, ...]]:
    places = [edit.path]
    if isinstance(edit, Rename):
        places.append((*edit.path[:-1], edit.to))
    return places


def _overlap(one: tuple[str | int, ...], two: tuple[str | int, ...]) -> bool:
    return all(a == b or EVERY in (a, b) for a, b in zip(one, two, strict=False))
