"""The account of a repair in words: what became of each value, and what is a question. Pure.

Names and reasons come from tools and callers. They are data: each is cut to a bound, on one line,
and stands in marks that it cannot close.
"""

from collections import Counter

from aftercall.json_patch import JsonPatchError, parse_pointer
from aftercall.json_values import bounded_text, printable_json
from aftercall.models.calls import Account, AccountedValue

MAX_ACCOUNT_CHARS = 400
"""Of an account in words: it stands next to the changes, which have 200 each."""
_MAX_NAME = 60
_MAX_REASON = 100
_ORIGINS = {
    "moved": "is moved",
    "recoded": "is rewritten",
    "stated": "is stated",
    "own": "is from this session",
    "setting": "is a usual setting",
    "unexplained": "is not explained",
}


def account_in_words(account: Account) -> str:
    """Return what a repair does with each value, in at most `MAX_ACCOUNT_CHARS` characters.

    Such as "`old_text` -> `oldText` (another spelling); 7 values kept". Questions come first, then
    what is left out, then the other values; what there is no space for is counted.
    """
    questions = [ask_for_place(value) for value in account.values if value.rivals]
    left_out = [
        f"{_place_name(dropped.path)} is left out{_reason_words(dropped.why)}"
        for dropped in account.dropped
    ]
    settled = [_value_sentence(value) for value in account.values if not value.rivals]
    counted = Counter([*questions, *left_out, *settled])
    parts = [part if many == 1 else f"{part}, {many} times" for part, many in counted.items()]
    kept = f"{account.kept or 'no'} value{'' if account.kept == 1 else 's'} kept"
    return "; ".join([*_within_bound(parts, MAX_ACCOUNT_CHARS - len(kept)), kept])


def ask_for_place(value: AccountedValue) -> str:
    """Return the places that would take a value, such as "`channelName` or `user`?"."""
    places = [value.path, *value.rivals]
    are_siblings = len({_parent_parts(place) for place in places}) == 1
    names = [_place_name(place, short=are_siblings) for place in places[:3]]
    others = ["another"] if len(places) > len(names) else []
    return f"{' or '.join([*names, *others])}?"


def why_not_followed(account: Account) -> str:
    """Return why a repair is for the caller to decide, by its account; "" where it may be done."""
    for value in account.values:
        if value.rivals:
            return f"more than one place would take the value: {ask_for_place(value)}"
    for value in account.values:
        if value.origin == "unexplained":
            return f"nothing explains the value of {_place_name(value.path)}"
    return ""


def _value_sentence(value: AccountedValue) -> str:
    if value.from_ is None or value.from_ == value.path:
        return f"{_place_name(value.path)} {_ORIGINS[value.origin]}{_reason_words(value.why)}"
    are_siblings = _parent_parts(value.from_) == _parent_parts(value.path)
    left, right = (_place_name(place, short=are_siblings) for place in (value.from_, value.path))
    return f"{left} -> {right}{_reason_words(value.why)}"


def _within_bound(parts: list[str], room: int) -> list[str]:
    shown: list[str] = []
    for part in parts:
        room -= len(part) + len("; ")
        if room < len("; 10,000 others"):
            return [*shown, f"{len(parts) - len(shown):,} others"]
        shown.append(part)
    return shown


def _path_parts(path: str) -> tuple[str, ...]:
    try:
        return tuple(parse_pointer(path))
    except JsonPatchError:  # of another program's making
        return (path,)


def _parent_parts(path: str) -> tuple[str, ...]:
    return _path_parts(path)[:-1]


def _place_name(path: str, *, short: bool = False) -> str:
    """Return a place in marks: `edits[0].oldText`, or its last name alone."""
    parts = _path_parts(path)
    words = ""
    for part in parts[-1:] if short else parts:
        dot = "." if words else ""
        words += f"[{part}]" if part.isdecimal() and words else f"{dot}{part}"
    return f"`{_plain_line(words, _MAX_NAME)}`"


def _reason_words(why: str) -> str:
    if why:
        return f" ({_plain_line(why, _MAX_REASON)})"
    return ""


def _plain_line(text: str, limit: int) -> str:
    """Return a text on one line, which cannot end the marks around it."""
    return bounded_text(printable_json(text[: limit + 1])[1:-1].replace("`", "'"), limit)
