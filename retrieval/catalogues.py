"""Catalogues: well-known closed lists of values, for tools that refuse a value without one."""

from collections.abc import Callable
from functools import cache
from zoneinfo import available_timezones


@cache
def _iana_time_zones() -> tuple[str, ...]:
    """Names of the IANA time zone database as this machine (or `tzdata`) has it."""
    return tuple(sorted(zone for zone in available_timezones() if "/" in zone or zone == "UTC"))


_CATALOGUES: dict[str, Callable[[], tuple[str, ...]]] = {"iana_time_zones": _iana_time_zones}


def catalogue(name: str) -> tuple[str, ...]:
    """The values of a catalogue.

    Raises:
        KeyError: when there is no catalogue of that name.
    """
    return _CATALOGUES[name]()
