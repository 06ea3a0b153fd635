"""How a tool's contract has changed: its schema before and now, and what the calls until now say.

Pure. Anything that is found is kept with the registered tool, and stated where its calls fail.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue, bounded_name, quote_text
from aftercall.models import ContractChange
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.values.parameters import ParameterView, view_of_schema

MAX_CHANGES = 20
"""Kept of a tool, the latest."""
TOLD_FOR = timedelta(days=30)
"""A change that is older is known by now."""
_MAX_VALUE = 60
_MAX_LISTED = 5
_REQUIRED = "is now required"


def contract_changes(
    before: JsonObject, after: JsonObject, profile: ToolProfile | None, at: datetime
) -> list[ContractChange]:
    """Return what a new schema requires otherwise than the one before."""
    old = view_of_schema(before).parameters
    new = view_of_schema(after).parameters
    said = [
        *((name, "was taken out") for name in old if name not in new),
        *(
            (name, each)
            for name in new
            for each in _describe_change(old.get(name), new[name], profile)
        ),
    ]
    said.sort(key=lambda each: not each[1].startswith(_REQUIRED))  # what breaks most calls first
    named = ((shown, each) for name, each in said if (shown := bounded_name(name)))
    return [
        ContractChange(at=at, parameter=name, said=each)
        for name, each in islice(named, MAX_CHANGES)
    ]


def _describe_change(
    old: ParameterView | None, new: ParameterView, profile: ToolProfile | None
) -> Iterator[str]:
    if new.required and (old is None or not old.required):
        had_it = ""  # how many of the calls that worked until now would have been right
        if profile is not None and profile.successes:
            known = profile.parameters.get(new.name)
            had = f"{known.successes if known else 0} of {profile.successes}"
            had_it = f" ({had} calls that worked had it)"
        yield f"{_REQUIRED}{had_it}"
    elif old is None:
        yield "is new, and optional"
    elif old.required and not new.required:
        yield "is now optional"
    if old is None:
        return
    if old.types and new.types and not set(old.types) <= set(new.types):
        yield f"must now be of type {' or '.join(new.types)} (was {' or '.join(old.types)})"
    if gone := [each for each in old.allowed if each not in new.allowed and new.allowed]:
        yield f"no longer takes {_list_values(gone)}"
    if new.allowed and not old.allowed:
        yield f"now takes only {_list_values(new.allowed)}"
    if new.maximum is not None and (old.maximum is None or new.maximum < old.maximum):
        yield f"must now be at most {new.maximum:g}"
    if new.minimum is not None and (old.minimum is None or new.minimum > old.minimum):
        yield f"must now be at least {new.minimum:g}"


def _list_values(values: Sequence[JsonValue]) -> str:
    shown = ", ".join(quote_text(each, _MAX_VALUE) for each in values[:_MAX_LISTED])
    return shown + (" and others" if len(values) > _MAX_LISTED else "")


def drift_text(
    changes: Sequence[ContractChange], now: datetime, about: frozenset[str] | None = None
) -> str | None:
    """Return the changes of late in one sentence.

    None without any. With `about`, of these parameters.
    """
    told = [
        each
        for each in changes
        if now - each.at <= TOLD_FOR and (about is None or each.parameter in about)
    ]
    if not told:
        return None
    day = max(each.at for each in told).astimezone(UTC).date().isoformat()
    listed = "; ".join(f"`{each.parameter}` {each.said}" for each in told[:_MAX_LISTED])
    return f"This tool changed on {day}: {listed}."
