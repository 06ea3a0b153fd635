"""Pydantic's validation errors in sentences: the field's path, the problem, the cure.

The offending value is never repeated: it may be large, and it may be a secret.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from aftercall.errors import MissingExtraError

HOW_TO_SERVE = (
    "the service is not installed here; in a checkout of the repository, run "
    "`pip install -c constraints.txt ./sdk .`"
)


def how_to_install(extra: str, *, of_service: bool = False) -> str:
    """Return which command brings an extra; from the repository, since no package index has it."""
    what = f"./sdk '.[{extra}]'" if of_service else f"'./sdk[{extra}]'"
    return f"in a checkout of the repository, run `pip install -c constraints.txt {what}`"


@contextmanager
def require_extra(extra: str, what: str) -> Iterator[None]:
    """Around the imports of what an extra brings."""
    try:
        yield
    except ImportError as error:
        cure = how_to_install(extra)
        raise MissingExtraError(f"{what} needs {error.name}; {cure}", name=error.name) from error


_ALIKE = 0.74
"""Ratio of `difflib`: `params` to `parameters` has 0.75, `args` to `agent` less."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, whatever its case and separators.

    None when none is near.
    """
    plain = {_plain_name(each): each for each in known}
    found = get_close_matches(_plain_name(name), plain, n=1, cutoff=_ALIKE)
    if found:
        return plain[found[0]]
    return None


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]+", " ", name).strip().lower()


_SHOWN = 5
"""Faults named in one message; a record with thousands has one cause."""
_MAX_NAME = 60
"""Characters of a caller's own field name that a message repeats."""


def explain_error(error: ValidationError, model: type[BaseModel]) -> str:
    """Return one line that names every faulty field and what it must be.

    The model has the names that were probably meant.
    """
    faults = error.errors(include_input=False, include_url=False)
    return _join_faults(faults, lambda fault: _fault_sentence(fault, model))


def explain_request(faults: Sequence[Any], model: type[BaseModel] | None) -> str:
    """Return one line that names every faulty parameter and field of a request and what it must be.

    The `loc` of each of FastAPI's faults begins with its place: path, query or body. The model is
    the body's; None without one.
    """
    return _join_faults(faults, lambda fault: _request_sentence(fault, model))


def _join_faults(faults: Sequence[Any], sentence: Callable[[Any], str]) -> str:
    # A misspelt field also shows as a missing one; its own sentence is the more helpful.
    misspelt = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    others = [fault for fault in faults if fault["type"] != "extra_forbidden"]
    sentences = [sentence(fault) for fault in (misspelt + others)[:_SHOWN]]
    more = len(faults) - _SHOWN
    if more > 0:
        sentences.append(f"and {more} more")
    return "; ".join(sentences)


def _request_sentence(fault: Any, model: type[BaseModel] | None) -> str:
    place, *location = fault["loc"]
    if place == "body" and fault["type"] == "model_attributes_type" and not location:
        return "the body must be a JSON object"
    if place == "body" and model is not None:
        return _fault_sentence({**fault, "loc": tuple(location)}, model)
    name = ".".join(
        _location_names(tuple(location))
    )  # one of a repeated parameter has its number behind
    if fault["type"] == "extra_forbidden":
        return f"unknown parameter `{name}`; see /docs for those there are"
    if name:
        return f"{name}: {explain_fault(fault)}"
    return explain_fault(fault)


def _fault_sentence(fault: Any, model: type[BaseModel]) -> str:
    path = ".".join(_location_names(fault["loc"]))
    if fault["type"] == "extra_forbidden":
        return _unknown_field(fault["loc"], model)
    if fault["type"] == "string_unicode":  # without a path when it is a field's own name
        return f"{path or 'a field name'}: contains a lone surrogate, which is not Unicode text"
    message = explain_fault(fault)
    if path:
        return f"{path}: {message}"
    return message


_PATTERNS = {
    "A-Za-z0-9._-": "should begin with a letter or digit, and have letters, digits, `.`, `_` and "
    "`-` alone, at most 64",
    "https?": "should be an address that begins with http:// or https://",
}
"""A part of a field's pattern, and what the pattern asks for in words."""


def explain_fault(fault: Any) -> str:
    """Return what one of pydantic's faults asks for, without the field and the value."""
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "string_too_short" and fault["ctx"]["min_length"] == 1:
        return "should not be empty"
    if fault["type"] == "string_pattern_mismatch":
        pattern = fault["ctx"]["pattern"]
        words = (text for part, text in _PATTERNS.items() if part in pattern)
        return next(words, f"should be of the form {pattern}")
    if fault["type"] == "too_long" and fault["ctx"]["field_type"] == "Value":
        # Pydantic's words for a text that another check came before: "items after validation".
        return f"must have at most {fault['ctx']['max_length']:,} characters"
    message = str(fault["msg"]).partition(" or instance of ")[0].replace(" after validation", "")
    return re.sub(r"^(?:Value error, |Input |String |List )|, unable to parse .*", "", message)


def _unknown_field(location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    *parents, name = _location_names(location)
    where = ".".join(parents)
    owner = _model_at(location[:-1], model)
    known = []
    if owner:
        known = [field.alias or name for name, field in owner.model_fields.items()]
    near = nearest_name(name, known)
    cure = f"did you mean `{near}`?" if near else f"known are {', '.join(known)}"
    place = f" in `{where}`" if where else ""
    return f"unknown field `{name}`{place}; {cure}"


def _location_names(location: tuple[int | str, ...]) -> Iterator[str]:
    for part in location:
        text = str(part)
        yield text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}…"


def _model_at(location: tuple[int | str, ...], model: type[BaseModel]) -> type[BaseModel] | None:
    """Return the model whose field is at `location`; None where the path leaves the models.

    A part that is no field is a place in a list, or a key; the model stays the same.
    """
    current = _first_model(model)  # of a body that is a list the model of its items
    for part in location:
        if current is None:
            return None
        fields = current.model_fields
        by_alias = {field.alias or name: field for name, field in fields.items()}
        field = by_alias.get(str(part)) or fields.get(str(part))
        if field:
            current = _first_model(field.annotation)
    return current


def _first_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _first_model(arg))), None)
