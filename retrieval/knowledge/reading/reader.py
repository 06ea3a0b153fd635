"""Reading an error: one pass over all grammars, then tying faults to the call's parameters.

Whether the call was refused *before it ran* decides if one that has effects may be sent again.
Words alone prove little: a tool that has done its work may fail on checking what came back, in the
very phrases that refuse a call. So a message counts only

- when the protocol states it (JSON-RPC -32602, HTTP 429), or a framework's frame around its check
  of the arguments opens the message: only the code that calls the tool writes those; or
- when a validator's words open the message and every fault fits the call: the missing name is
  missing, the refused one is there, and where the message shows the input, it is the call's own;

and never when it speaks of an output, a response or a result.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.models import ErrorCategory, ExecutionError
from retrieval.knowledge.reading.category import CODES, UNREAD, categorise_error, code_within
from retrieval.knowledge.reading.complaints import of_alternatives, read_complaints
from retrieval.knowledge.reading.embedded import embedded_json
from retrieval.knowledge.reading.faults import Fault, is_written_number, read_text
from retrieval.knowledge.reading.places import faults_of_others, place_fault
from retrieval.knowledge.reading.signature import (
    inner_text,
    signature_of,
    strip_frames,
    without_values,
)
from retrieval.knowledge.reading.structured import read_pydantic, read_structured
from retrieval.knowledge.values.forms import told_forms
from retrieval.knowledge.values.likeness import words_of
from retrieval.knowledge.values.parameters import Path, leaves_like, value_at
from retrieval.knowledge.values.scalars import type_of

_RAN = re.compile(
    r"\b(?:output|outputs|response|responses|result|results|returned|structured content)\b|"
    r"for \w*(?:Response|Result|Output|Reply)\b"
)
_ARGUMENT_CHECK = re.compile(
    # The Python and TypeScript SDKs of MCP, and FastMCP 2, before they call the function.
    r"MCP error -32602: |Input validation error: |Invalid arguments for tool |"
    r"\d+ validation errors? for (?:call\[[^\]\n]{1,256}\]|\w{0,256}Arguments)\n"
)
_FRAME = re.compile(r"(?:Error (?:executing|calling) tool [^\s:]{1,256}: |Error: )*")
_VALIDATOR = re.compile(
    r"\d+ validation errors? for \w|"  # pydantic
    r"[\w.]{1,200}\(\) (?:got an unexpected keyword argument|missing \d+ required) |"  # Python
    r"'[^'\n]{1,64}' is a required property|Additional properties are not allowed|"  # jsonschema
    r"[^\n]{1,200} is not of type '"
)
_REFUSING_CODES = frozenset({"-32602", "429"})
_SHOWN = 24
"""Characters compared of an input that a message shows; pydantic cuts it at 25."""


def is_rejected_before_run(
    code: str, message: str, faults: Sequence[Fault], parameters: JsonObject
) -> bool:
    """Return whether the error proves that nothing happened yet.

    Its faults are tied to the parameters.
    """
    if _RAN.search(message):
        return False
    body = message.lstrip()
    frame = _FRAME.match(body)
    if code in _REFUSING_CODES or _ARGUMENT_CHECK.match(body, frame.end() if frame else 0):
        return True
    if code.isdecimal() or not _VALIDATOR.match(strip_frames(message)):
        return False
    return bool(faults) and all(_fits_call(fault, parameters) for fault in faults)


def _fits_call(fault: Fault, parameters: JsonObject) -> bool:
    if fault.parameter is None or fault.guessed_place:
        return False
    if fault.kind == "missing":
        if len(fault.path) > 1 or fault.parameter in parameters:
            return False
        return _is_start(fault.shown_input, parameters)
    if fault.parameter not in parameters:
        return False
    return len(fault.path) > 1 or _is_start(fault.shown_input, parameters[fault.parameter])


def _is_start(shown: str | None, value: JsonValue) -> bool:
    """Return whether `shown`, cut by `...`, may be the `repr` of the value.

    True when nothing is shown.
    """
    return shown is None or repr(value)[:_SHOWN].startswith(shown.split("...")[0][:_SHOWN])


READ_LIMIT = 4_000
"""Characters of a message that the grammars read; validators say what matters first."""
_MAX_LEAVES = 1_000
"""Values of a call that are looked for in the message; real calls have a few dozen."""
_MAX_FAULTS = 64
_MAX_LEAF = 300
_SURE = 0.8
"""Below it there was a weak phrase only; those are right in 0.6 of new families."""


@dataclass(frozen=True, slots=True)
class ErrorReading:
    """What an error states. `confidence` (0 to 1, higher is surer) is of the category."""

    category: ErrorCategory
    confidence: float
    signature: str
    faults: tuple[Fault, ...]
    rejected_before_run: bool
    is_cut: bool = False
    """The arguments end in the middle of their JSON: what was meant is not in the call."""

    @property
    def is_unsure(self) -> bool:
        """Classifier is to be asked: no grammar knows the message, or by a weak phrase alone."""
        is_unread = self.category == "unknown" and self.confidence <= UNREAD
        return is_unread or (self.confidence < _SURE and not self.faults)

    @property
    def implicated(self) -> frozenset[str]:
        """Top-level parameters that the error states something about."""
        return frozenset(fault.parameter for fault in self.faults if fault.parameter)


def read_error(error: ExecutionError, parameters: JsonObject) -> ErrorReading:
    """Read an error in the light of the parameters that caused it. Pure; never raises."""
    message = inner_text(error.message[:READ_LIMIT])
    code = (error.code or "").strip()
    if error.details and code.upper() not in CODES:
        code = code_within(error.details) or code
    leaves = [
        (path, str(value))
        for path, value in leaves_like(parameters, ())
        if value is not None and not (isinstance(value, str) and len(value) > _MAX_LEAF)
    ]
    told = read_structured(error.details) if error.details else ()
    said = list(islice((*faults_in(message), *told), _MAX_FAULTS))
    absent = {fault.path for fault in said if fault.kind == "missing" and fault.path}
    found = [f for f in said if f.kind in ("missing", "unexpected") or f.path not in absent]
    is_cut = are_arguments_cut(message, parameters)
    tied = (_tie_fault(place_fault(fault, parameters), parameters, leaves) for fault in found)
    tied = (_of_number(fault, parameters) for fault in tied)
    placed = [f for f in tied if f.path or not f.given_types or f.value_text is not None]
    placed += [each for fault in placed for each in faults_of_others(fault, parameters)]
    faults = tuple(_distinct_faults(_join_faults(list(_distinct_faults(of_alternatives(placed))))))
    # Of files or code of its own, and not of the call; but for a value of it.
    is_of_program = bool(_PRINTED.match(message) or _SENT_CODE.search(message))
    if is_of_program:
        faults = tuple(f for f in faults if f.path and f.value_text is not None)
    if exact := next((form for form in told_forms(message) if "'T'" in form), None):
        faults = tuple(
            replace(f, kind="bad_format", expected_format=exact)
            if f.kind in ("bad_format", "invalid")
            else f
            for f in faults
        )
    faults = () if is_cut else faults
    reading = categorise_error(
        error.type,
        code,
        without_values(message, [text for _, text in leaves] + _missing_names(faults)),
        has_faults=bool(faults),
        blames_value=any(f.kind in _OF_VALUES and f.parameter in parameters for f in faults),
        blames_form=any(
            f.kind == "missing" or (f.kind in _OF_FORMS and f.parameter in parameters)
            for f in faults
        ),
    )
    if (below := _below_root(message, leaves)) is not None:
        faults = (below,)
        reading = replace(reading, category="invalid_parameters")
    faults = _place_faults(faults, reading.category, message, leaves)
    is_unplaced = not is_of_program and not any(fault.path for fault in faults)
    if is_unplaced and reading.category in _NAMING:
        faults = (*faults, *_named_fault(message, parameters))
    # What is neither sent nor missing may be anyone's data, and no name of a parameter.
    names = {
        str(part)
        for fault in faults
        if fault.parameter in parameters or (fault.kind == "missing" and not fault.guessed_place)
        for part in fault.path
    }
    return ErrorReading(
        category=reading.category,
        confidence=reading.confidence,
        signature=signature_of(
            message,
            names=names | parameters.keys(),
            values=[text for _, text in leaves],
            parameters=parameters,
        ),
        faults=faults,
        rejected_before_run=reading.category in _REFUSALS
        and not _has_run(error.details)
        and is_rejected_before_run(code, message, faults, parameters),
        is_cut=is_cut,
    )


def _missing_names(faults: Sequence[Fault]) -> list[str]:
    """Return the names that are stated to be missing: `timeout` is no time-out."""
    return [str(fault.path[-1]) for fault in faults if fault.kind == "missing" and fault.path]


_OUTSIDE = re.compile(r"outside (?:the )?allowed director(?:y|ies): (\S+) not in (/[^\s,]+)\Z")


def _below_root(message: str, leaves: Sequence[tuple[Path, str]]) -> Fault | None:
    """Return a relative path that a server took from another folder than the one that it allows."""
    found = _OUTSIDE.search(message)
    for path, text in leaves if found else ():
        if found and found[1].endswith(f"/{text}") and ".." not in text and text[:1] not in "/~.":
            whole = f"{found[2]}/{text}"
            return Fault("not_allowed", path, allowed=(whole,), stated=whole, value_text=text)
    return None


_PRINTED = re.compile(r"(?:\w+: )?exit(?:ed with)? (?:code|status):? -?\d+\s*\n", re.IGNORECASE)
"""Of a program that ran: what follows is what it printed."""
_SENT_CODE = re.compile(r'^\s+File "<(?:string|stdin|ipython-input|cell|exec|eval)\b', re.MULTILINE)
"""A line of a traceback in code that was sent as a text."""
_ENDS_EARLY = re.compile(
    r"unterminated string|unexpected end of|unexpected eof|eof while parsing|end of json input|"
    r"expecting (?:'.'|property name|value\b|[^\n]{1,12} delimiter)|incomplete json",
    re.IGNORECASE,
)
_OF_ARGUMENTS = re.compile(
    r"\b(?:arguments|parameters|params|(?:tool|function)[ _](?:call|input))\b", re.IGNORECASE
)
_OF_JSON = re.compile(
    r"json|pars|decod|unterminated|unexpected end|\beof\b|delimiter|object|array|dict|\blist\b",
    re.IGNORECASE,
)


def are_arguments_cut(message: str, parameters: JsonObject) -> bool:
    """Return whether the call was cut off in the middle of its arguments.

    So it is where a text that was sent breaks off within its JSON and the error is about JSON, or
    where JSON broke off and there are no arguments, or the error states that it was theirs.
    """
    if _RAN.search(message) or not _OF_JSON.search(message):
        return False
    if any(isinstance(each, str) and _breaks_off(each) for _, each in leaves_like(parameters, ())):
        return True
    is_theirs = not parameters or _OF_ARGUMENTS.search(message) is not None
    return is_theirs and ends_early(message)


def ends_early(message: str) -> bool:
    """Return whether an error states that JSON broke off, whosever it was."""
    return _ENDS_EARLY.search(message) is not None and _RAN.search(message) is None


_SHORTEST_JSON = 8
"""Characters of a text from which on it is the beginning of JSON, and no bracket by itself."""


def _breaks_off(text: str) -> bool:
    text = text.strip()
    if text[:1] not in ("{", "[") or len(text) < _SHORTEST_JSON:
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or error.pos >= len(text)
    except (RecursionError, ValueError):
        return False
    return False


_SHORTEST = 4
"""Characters of a value from which on it stands in a message by no chance."""


def _place_faults(
    faults: tuple[Fault, ...], category: ErrorCategory, message: str, leaves: list[tuple[Path, str]]
) -> tuple[Fault, ...]:
    """Return the faults, without a place about the only value of the call in the message."""
    homeless = [f for f in faults if not f.path and f.kind in ("not_found", "not_allowed")]
    if any(fault.path for fault in faults) or (not homeless and category != "not_found"):
        return faults
    shown = [
        (path, text)
        for path, text in leaves
        if len(path) == 1
        and len(text.strip()) >= _SHORTEST
        and re.search(rf"(?<!\w){re.escape(text.strip())}(?!\w)", message)
    ]
    if len(shown) != 1:
        return faults
    [(path, text)] = shown
    found = homeless[0] if homeless else Fault("not_found")
    return (*(f for f in faults if f not in homeless), replace(found, path=path, value_text=text))


_NAMING = frozenset({"invalid_parameters", "not_found", "unknown"})
_A_NAME = re.compile(
    r"(?P<quote>['\"`])(?P<quoted>[A-Za-z_][\w-]{2,63})(?P=quote)(?!\s?[:=])"
    r"|(?<![\w'\"`-])(?P<bare>[A-Za-z_][\w-]{2,63})(?![\w'\"`-]|\s?[:=])"
)
"""A name in a message, and no member of an object that the message echoes."""
_SHAPED = re.compile(r"[a-z0-9][A-Z_-]|_")


def _named_fault(message: str, parameters: JsonObject) -> Iterator[Fault]:
    """Yield a fault of unknown kind for the one key of the call that a message names.

    A message names a key in marks, or where the key has the shape of a name and of no plain word.
    """
    shown = {
        found["quoted"] or found["bare"]
        for found in _A_NAME.finditer(message)
        if found["quoted"] or _SHAPED.search(found["bare"])
    }
    keys = dict.fromkeys(
        path[:end]
        for path, _ in leaves_like(parameters, ())
        for end in range(1, len(path) + 1)
        if path[end - 1] in shown
    )
    if len(keys) == 1:
        yield Fault("invalid", next(iter(keys)))


def _has_run(details: JsonValue) -> bool:
    """Return whether the caller, an adapter, saw the tool's own code run.

    If so, no wording of the message proves otherwise.
    """
    return isinstance(details, dict) and details.get("ran") is True


_WORKED = re.compile(
    r"\b(?:sent|done|created|processed|completed?|partial(?:ly)?|succe\w+|inserted|updated|"
    r"deleted|removed|saved|written|wrote|applied|queued|booked|charged|paid|after|then)\b",
    re.IGNORECASE,
)


def tells_of_work(error: ExecutionError) -> bool:
    """Return whether an error shows that something was done before it, or that the tool ran."""
    message = error.message
    told = _RAN.search(message) or _RAN.search(message.lower()) or _WORKED.search(message)
    return bool(told) or _has_run(error.details)


_OF_VALUES = frozenset({"wrong_type", "out_of_range", "not_allowed", "bad_format", "unexpected"})
_OF_FORMS = frozenset({"wrong_type", "out_of_range", "bad_format", "unexpected"})
_REFUSALS = frozenset({"invalid_parameters", "rate_limited"})


@lru_cache(maxsize=1024)
def faults_in(message: str) -> tuple[Fault, ...]:
    """Return all faults in a message.

    A grammar made for the message's validator wins over phrases.
    """
    if exact := tuple(read_pydantic(message)):
        return exact
    if structured := tuple(f for value in embedded_json(message) for f in read_structured(value)):
        return structured
    if complaints := read_complaints(strip_frames(message)):
        return tuple(complaints)
    return tuple(islice(read_text(strip_frames(message)), _MAX_FAULTS))


def _of_type(fault: Fault, parameters: JsonObject) -> Path:
    """Return the one parameter of the type that a message shows instead of a name, if it is one."""
    places = [
        name
        for name, value in islice(parameters.items(), _MAX_LEAVES)
        if type_of(value) in fault.given_types
        and not (
            isinstance(value, str)
            and fault.expected_types == ("number",)
            and not is_written_number(value)
        )
    ]
    if len(places) == 1:
        return (places[0],)
    return ()


_IN_MARKS = re.compile(r"\A(['\"`])(.*)\1\Z", re.DOTALL)


def _tie_fault(fault: Fault, parameters: JsonObject, leaves: list[tuple[Path, str]]) -> Fault:
    """Find the parameter of a fault that the message names only by value or in other words."""
    if fault.given_types and not fault.path and fault.value_text is None:
        return replace(fault, path=_of_type(fault, parameters))
    if fault.value_text is not None:
        fault = replace(fault, value_text=_IN_MARKS.sub(r"\2", fault.value_text))
    if (whole := ".".join(map(str, fault.path))) in parameters:
        fault = replace(fault, path=(whole,))  # `params.city` is one name
    if fault.value_text is not None and (place := _place_of_value(fault, parameters, leaves)):
        # Python's KeyError shows a key: the call's own value where it has one, else a name.
        kind = "not_found" if fault.kind == "missing" else fault.kind
        return replace(fault, kind=kind, path=place)
    if fault.kind == "bad_format" and not fault.path and fault.value_text in parameters:
        return replace(fault, path=(fault.value_text,), value_text=None)  # a name, in quotes
    if fault.kind == "missing" and fault.value_text is not None:
        return replace(fault, value_text=None, guessed_place=True)
    if fault.kind == "missing" and fault.path and _is_null(parameters, fault.path):
        return replace(fault, kind="wrong_type")  # it is there, and must not be null
    if fault.kind == "unexpected" and fault.parameter and fault.parameter not in parameters:
        bare = [name for name in parameters if name.strip() == fault.parameter]
        return replace(fault, path=(bare[0],)) if bare else fault
    if not fault.path or fault.kind in ("missing", "unexpected"):
        return fault
    return _tied_by_name(fault, parameters, leaves)


def _of_number(fault: Fault, parameters: JsonObject) -> Fault:
    """Return a fault whose bounds are of a number where the value is one: it has no length."""
    if not fault.of_length or not fault.path:
        return fault
    is_number = isinstance(value_at(parameters, fault.path), int | float)
    if is_number:
        return replace(fault, of_length=False)
    return fault


def _is_null(parameters: JsonObject, path: Path) -> bool:
    above = value_at(parameters, path[:-1]) if len(path) > 1 else parameters
    return isinstance(above, dict) and path[-1] in above and above[str(path[-1])] is None


def _place_of_value(
    fault: Fault, parameters: JsonObject, leaves: list[tuple[Path, str]]
) -> Path | None:
    if fault.value_text is None or (fault.path and str(fault.path[0]) in parameters):
        return None
    if fault.kind == "not_found" and fault.value_text in ("True", "False"):
        return None  # of an envelope: no tool looks a flag up
    places = [path for path, text in leaves if fault.value_text in (text, text.strip())]
    if fault.value_text[:1] in "[{":
        shown = islice(parameters.items(), _MAX_LEAVES)
        places += [(name,) for name, value in shown if _is_shown(value, fault.value_text)]
    if len(places) == 1:
        return places[0]
    return None


def _tied_by_name(fault: Fault, parameters: JsonObject, leaves: list[tuple[Path, str]]) -> Fault:
    name, *inside = fault.path
    if str(name) not in parameters and inside and str(inside[0]) in parameters:
        return _tied_by_name(replace(fault, path=tuple(inside)), parameters, leaves)
    if str(name) in parameters:
        if inside and not isinstance(parameters[str(name)], dict | list):
            # Nothing is inside a plain value: pydantic names members of a union so (`limit.int`).
            return replace(fault, path=(name,))
        return fault
    near = _parameter_called(str(name), parameters)
    if near is not None:
        return replace(fault, path=(near, *inside))
    own = [path for path, text in leaves if text == name]
    if fault.kind == "invalid" and not inside and len(own) == 1:
        return replace(fault, path=own[0], value_text=str(name))  # not a name but the value itself
    deeper = [path for path, _ in leaves if len(path) > 1 and path[-1] == fault.path[-1]]
    if len(deeper) == 1:
        return replace(fault, path=deeper[0], guessed_place=True)
    # A name that the call does not have stays: what is stated of it is stated of no other.
    return fault


def _join_faults(faults: list[Fault]) -> list[Fault]:
    """Join two faults where one sentence states what is wrong and another what would be right."""
    for what in ("allowed", "suggested", "expected_format"):
        right = [f for f in faults if not f.path and getattr(f, what) and f.value_text is None]
        wrong = [
            f
            for f in faults
            if (f.kind in ("invalid", "not_found") or (what == "suggested" and f.path))
            and f not in right
        ]
        if len(right) != 1 or len(wrong) != 1:
            continue
        faults.remove(right[0])
        if not getattr(wrong[0], what):
            kind = wrong[0].kind if what == "suggested" else right[0].kind
            changed = replace(wrong[0], kind=kind, **{what: getattr(right[0], what)})
            faults[faults.index(wrong[0])] = changed
    return faults


def _distinct_faults(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield one fault per path and kind.

    A vague `invalid` yields to any clearer word on its path.
    """
    kept: dict[tuple[object, ...], Fault] = {}
    for f in faults:
        kept.setdefault((f.kind, f.path, None if f.path else f.suggested), f)
    clear = {f.path for f in kept.values() if f.kind != "invalid"} | {()}
    placed = {f.kind for f in kept.values() if f.path}
    mistyped = {f.path for f in kept.values() if f.kind == "wrong_type" and f.path}
    for f in kept.values():
        is_vague = f.kind == "invalid" and not f.suggested and f.path in clear
        is_said_twice = not f.path and f.kind in placed and f.value_text is None
        is_renamed = f.kind == "missing" and ("unexpected", f.path, None) in kept
        is_of_items = f.kind in ("bad_format", "not_allowed") and f.path in mistyped
        is_of_items |= f.kind == "missing" and f.path[:-1] in mistyped
        if not (is_vague or is_said_twice or is_renamed or is_of_items):
            yield f


def _is_shown(value: JsonValue, text: str) -> bool:
    """Return whether a message shows an array or object so, as Python or as JSON writes it."""
    if not isinstance(value, list | dict) or len(text) > _MAX_LEAF or len(value) > _MAX_LEAF:
        return False
    return text in (repr(value), canonical_json(value), json.dumps(value))


def _parameter_called(name: str, parameters: JsonObject) -> str | None:
    """Return the one parameter that a message names in its own words (`Page size`)."""
    words = words_of(name)
    keys = list(islice(parameters, _MAX_LEAVES)) if words else []
    same = [key for key in keys if "".join(words_of(key)) == "".join(words)]
    same = same or [key for key in keys if set(words) <= set(words_of(key))]
    if len(same) == 1:
        return same[0]
    return None
