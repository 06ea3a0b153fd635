"""Edits: the general form of what a repair did, so that it can be done to another call.

`rename tz -> timezone` is general, and so is `take the value that the error states`; `set timezone
to "Europe/Berlin"` is only right for a call that said what the mended one said, so a `replace`
carries the value it stood for.
"""

from retrieval.edits.apply import apply_edits
from retrieval.edits.base import EVERY, EditDoesNotApplyError, Grounds
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
from retrieval.edits.infer import infer_edits
from retrieval.edits.keys import Edit, edit_key, edits_of_key, for_any_tool, names_of, touches
from retrieval.edits.structure import Add, Remove, Rename, Replace

OF_ANY_TEXT = (Respell, Strip, Prefix, Split, Join)
"""Edits that can be made to nearly every text, whatever is wrong with it."""

__all__ = [
    "EVERY",
    "OF_ANY_TEXT",
    "Add",
    "Balance",
    "Cast",
    "Clamp",
    "Copy",
    "Edit",
    "EditDoesNotApplyError",
    "FromContext",
    "FromError",
    "Grounds",
    "Join",
    "Prefix",
    "Reformat",
    "Remove",
    "Rename",
    "Replace",
    "Respell",
    "Snap",
    "Split",
    "Strip",
    "Unwrap",
    "Usual",
    "Wrap",
    "apply_edits",
    "edit_key",
    "edits_of_key",
    "for_any_tool",
    "infer_edits",
    "names_of",
    "touches",
]
