"""Version numbers of tools: up to three numbers, as in `1.2.0`, `1.2` or `v2`."""

import re
from typing import NamedTuple

_VERSION = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?", re.ASCII)


class VersionNumber(NamedTuple):
    """A version; compares number by number, so that 1.10.0 comes after 1.9.0."""

    major: int
    minor: int = 0
    patch: int = 0

    def __str__(self) -> str:
        """Such as `1.2.0`."""
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def next_minor(self) -> "VersionNumber":
        """The version that an evolved tool gets (seed 002)."""
        return VersionNumber(self.major, self.minor + 1, 0)


def parse_version(text: str) -> VersionNumber:
    """The numbers of a version.

    Raises:
        ValueError: the text is no version; the message shows one.
    """
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:40]!r} is no version; write it like 1.2.0")
    return VersionNumber(*(int(number or 0) for number in found.groups()))


def check_version(text: str) -> str:
    """The text itself, when it is a version.

    Raises:
        ValueError: as `parse_version`.
    """
    parse_version(text)
    return text


def same_version(one: str, other: str) -> bool:
    """Whether two texts name one version: `1.2` and `1.2.0` do; others must be equal as text."""
    try:
        return parse_version(one) == parse_version(other)
    except ValueError:
        return one == other
