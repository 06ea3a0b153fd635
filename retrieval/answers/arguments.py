"""Arguments that came as a text: what a suggestion reads in them.

The SDK reads what is JSON, however loosely written (`aftercall.arguments`); here other notations
are read as well, and a text behind whose last value only brackets are missing.
"""

from aftercall.arguments import MAX_ARGUMENTS, is_cut_off, is_in_text
from aftercall.arguments import read_arguments as read_json_arguments
from aftercall.json_values import JsonObject
from retrieval.knowledge.values.notations import object_in
from retrieval.knowledge.values.parameters import CallT


def read_any_arguments(text: str) -> JsonObject | None:
    """Return the object that the text of a call's arguments states, in whatever notation.

    None where it states no object, where it breaks off inside of a value, and where a value of the
    object stands nowhere in the text: nothing is completed by a guess.
    """
    if len(text) > MAX_ARGUMENTS or is_cut_off(text, unclosed=True):
        return None
    if found := object_in(text):
        return found if is_in_text(found, text) else None
    return read_json_arguments(text, unclosed=True)


def with_arguments(call: CallT) -> CallT:
    """Return a call whose arguments came as a text with the object that the text states, if any."""
    read = read_any_arguments(call.arguments_text) if call.arguments_text is not None else None
    if read is None:
        return call
    return call.model_copy(update={"parameters": read, "parameters_known": True})
