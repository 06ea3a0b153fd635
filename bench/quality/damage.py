"""Damages: the mistakes that agents make, done to a right call. The same for the same seed.

Kinds as in the table of the benchmark. A rename is drawn from the names that agents use for the
parameter: other letter case and separators, words left out or added, and synonyms that share no
letter with it. A wrong value is a slip of the pen, another call's value, or a number out of bounds.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from bench.quality.trial import TWO, Damage, Json

_SYNONYMS = {
    "folder": ("directory", "dir", "path"), "dir_name": ("directory", "folder_name", "dirname"),
    "file_name": ("filename", "file", "path"), "source": ("src", "from", "source_path"),
    "destination": ("dest", "target", "to"), "pattern": ("query", "regex", "search"),
    "content": ("text", "body", "contents"), "message": ("text", "body", "msg"),
    "receiver_id": ("recipient_id", "to", "user_id"), "user_id": ("userid", "uid", "user"),
    "city": ("city_name", "location", "town"), "zipcode": ("zip", "postal_code", "zip_code"),
    "title": ("subject", "name", "heading"), "description": ("desc", "details", "body"),
    "ticket_id": ("id", "ticket", "ticketId"), "tweet_id": ("id", "tweet", "tweetId"),
    "numbers": ("values", "nums", "data"), "value": ("number", "amount", "val"),
    "distance": ("miles", "dist", "distance_miles"), "username": ("user", "user_name", "login"),
    "password": ("pass", "passwd", "pwd"), "owner": ("org", "repo_owner", "user"),
    "repo": ("repository", "repo_name", "project"), "query": ("q", "search", "search_query"),
    "priority": ("prio", "importance", "level"), "lines": ("n", "num_lines", "line_count"),
    "page": ("page_number", "pageNum", "p"), "perPage": ("per_page", "page_size", "limit"),
}  # fmt: skip
_PORTIONS = frozenset(("page", "perPage", "limit", "lines", "first", "last", "max_count"))
"""Who asks for more than there may be at a time means as much as there may be, not some number."""
_JUNK: tuple[tuple[str, Any], ...] = (
    ("verbose", True), ("format", "json"), ("timeout", 30), ("dry_run", False),
    ("request_id", "r-1"), ("limit", 10), ("encoding", "utf-8"), ("force", True),
    ("locale", "en-US"), ("async", False), ("retries", 3), ("comment_for_log", "as the user asked"),
)  # fmt: skip


def damages_of(
    call: Json, schema: Json | None, others: Sequence[Json], rng: random.Random
) -> Iterator[Damage]:
    """One damage of each kind that the call can have (two of a wrong value), and two at once.

    Args:
        call: the right parameters.
        schema: the tool's schema; what it requires can be missing.
        others: parameters of other calls of the tool, for values that are right elsewhere.
        rng: draws which parameter and how.
    """
    required = [name for name in (schema or {}).get("required", list(call)) if name in call]
    if required:
        yield Damage("missing required", rng.choice(required))
    if call:
        name = rng.choice(list(call))
        yield Damage("renamed key", name, how=rng.choice(aliases_of(name)))
    forms = [(name, how) for name, value in call.items() for how in _other_types(value)]
    if forms:
        yield Damage("wrong type", *rng.choice(forms))
    texts = [name for name, value in call.items() if isinstance(value, str) and len(value) >= 4]
    if texts:
        name = rng.choice(texts)
        yield Damage("wrong value", name, "misspelt", _misspelt(call[name], rng))
    elsewhere = [
        (name, other[name])
        for other in others
        for name in call
        if name in other and other[name] != call[name] and not isinstance(other[name], dict)
    ]
    numbers = [
        name
        for name, value in call.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name not in _PORTIONS
    ]
    if numbers and (not elsewhere or rng.random() < 0.5):
        name = rng.choice(numbers)
        yield Damage("wrong value", name, "out of bounds", rng.choice((-1, 1000)) * abs(call[name]))
    elif elsewhere:
        name, value = rng.choice(elsewhere)
        yield Damage("wrong value", name, "of another call", value)
    cased = [name for name, value in call.items() if isinstance(value, str) and _cases(value)]
    if cased:
        name = rng.choice(cased)
        yield Damage("changed case", name, rng.choice(_cases(call[name])))
    name, value = rng.choice([each for each in _JUNK if each[0] not in call])
    yield Damage("unexpected parameter", name, "added", value)
    if len(call) > 1:
        first, second = rng.sample(list(call), 2)
        renamed = Damage("renamed key", first, rng.choice(aliases_of(first)))
        types = list(_other_types(call[second]))
        if types and rng.random() < 0.5:
            also = Damage("wrong type", second, rng.choice(types))
        else:
            also = Damage("renamed key", second, rng.choice(aliases_of(second)))
        yield Damage(TWO, first, renamed.how, also=also)


def damaged(call: Json, damage: Damage) -> Json | None:
    """The call with the damage done to it; None where it cannot have it."""
    if damage.also is not None:
        first = damaged(call, Damage("renamed key", damage.parameter, damage.how))
        return None if first is None else damaged(first, damage.also)
    name, how = damage.parameter, damage.how
    if damage.kind == "unexpected parameter":
        return None if name in call else {**call, name: damage.value}
    if name not in call:
        return None
    if damage.kind == "missing required":
        return {key: value for key, value in call.items() if key != name}
    if damage.kind == "renamed key":
        if how in call:
            return None
        return {(how if key == name else key): value for key, value in call.items()}
    value = call[name]
    if damage.kind == "wrong type":
        changed = _other_types(value).get(how)
    elif damage.kind == "changed case":
        changed = _in_case(value, how) if isinstance(value, str) else None
    else:
        changed = damage.value
    return None if changed is None or changed == value else {**call, name: changed}


def aliases_of(name: str) -> list[str]:
    """Names that an agent may use instead, in a fixed order."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    lower = [word.lower() for word in words]
    found = [
        *_SYNONYMS.get(name, ()),
        "_".join(lower),
        lower[0] + "".join(word.title() for word in lower[1:]),
        "".join(word.title() for word in lower),
        f"{name}_value",
    ]
    if len(lower) > 1:
        found += ["".join(lower), lower[0], lower[-1]]
    if len(name) > 5:
        found.append(name[:4])
    return [each for each in dict.fromkeys(found) if each != name]


def _other_types(value: Any) -> dict[str, Any]:
    """The value in other types, by the name of the mistake."""
    if isinstance(value, bool):
        return {"yes or no as text": "true" if value else "false", "in a list": [value]}
    if isinstance(value, int | float):
        return {"number as text": str(value), "in a list": [value]}
    if isinstance(value, str):
        return {"in a list": [value]}
    if isinstance(value, list):
        forms: dict[str, Any] = {"as JSON text": json.dumps(value)}
        if len(value) == 1:
            forms["bare"] = value[0]
        if len(value) > 1 and all(isinstance(item, str) and "," not in item for item in value):
            forms["joined"] = ", ".join(value)
        return forms
    return {"as JSON text": json.dumps(value)} if isinstance(value, dict) else {}


def _misspelt(text: str, rng: random.Random) -> str:
    """One slip: a letter left out, doubled or swapped with its neighbour; never a digit."""
    places = [at for at in range(1, len(text)) if text[at].isalpha() and text[at - 1].isalpha()]
    if not places:
        return text
    at = rng.choice(places)
    slip = rng.choice(("left out", "doubled", "swapped"))
    if slip == "swapped" and text[at] != text[at - 1]:
        return text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]
    return text[:at] + text[at] * (2 if slip == "doubled" else 0) + text[at + 1 :]


def _cases(text: str) -> list[str]:
    return [how for how in ("lower", "upper", "title") if _in_case(text, how) != text]


def _in_case(text: str, how: str) -> str:
    return {"lower": text.lower(), "upper": text.upper(), "title": text.title()}[how]
