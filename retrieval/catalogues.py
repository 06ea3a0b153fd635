"""Catalogues: well-known closed lists of values, for tools that refuse a value without one."""

import re
from collections.abc import Callable
from functools import cache
from zoneinfo import available_timezones


@cache
def _iana_time_zones() -> tuple[str, ...]:
    """Names of the IANA time zone database as this machine (or `tzdata`) has it."""
    return tuple(sorted(zone for zone in available_timezones() if "/" in zone or zone == "UTC"))


_CATALOGUES: dict[str, tuple[Callable[[], tuple[str, ...]], re.Pattern[str]]] = {
    "iana_time_zones": (
        _iana_time_zones,
        re.compile(r"time[ _-]?zone|\btz|tz\b|_tz", re.IGNORECASE),
    )
}


def catalogue(name: str) -> tuple[str, ...]:
    """The values of a catalogue.

    Raises:
        KeyError: when there is no catalogue of that name.
    """
    return _CATALOGUES[name][0]()


def is_about(name: str, parameter: str, words: str) -> bool:
    """Whether a parameter holds what is listed in a catalogue, by its name or by what is said.

    Args:
        name: the catalogue.
        parameter: the parameter's name.
        words: the error's words; they count for a parameter whose name says nothing.

    Raises:
        KeyError: when there is no catalogue of that name.
    """
    pattern = _CATALOGUES[name][1]
    return bool(pattern.search(parameter) or pattern.search(words))
