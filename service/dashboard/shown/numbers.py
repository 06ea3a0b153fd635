"""Numbers and times in words: thousands separated, UTC, one decimal of a per cent. Pure."""

from datetime import UTC, datetime


def count(value: int) -> str:
    """`12,345`."""
    return f"{value:,}"


def percent(share: float) -> str:
    """A share in [0, 1] as `94.0 %`."""
    return f"{share * 100:.1f} %"


def duration(milliseconds: float) -> str:
    """`8 ms`, `2.3 s`, `4.0 min`, `1.5 h`."""
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    for unit, size in (("s", 60.0), ("min", 60.0)):
        if seconds < size * 2:
            return f"{seconds:.1f} {unit}"
        seconds /= size
    return f"{seconds:.1f} h"


def moment(at: datetime) -> str:
    """`2026-11-22 14:05`, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
