"""Wording: sentences that the prompt and the page share. The caller escapes what is put in."""


def times(count: int) -> str:
    """`once`, `12 times`."""
    return "once" if count == 1 else f"{count} times"


def percent(share: float) -> str:
    """`92%`; 100% and 0% only where it is exactly that."""
    rounded = round(100 * share)
    if rounded == 100 and share < 1:
        rounded = 99
    if rounded == 0 and share > 0:
        rounded = 1
    return f"{rounded}%"


def duration(seconds: float) -> str:
    """`0.5 s`, `90 s`, `12 min`, `3 h`: two digits that matter."""
    for size, unit in ((3_600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{_rounded(seconds / size)} {unit}"
    return f"{_rounded(max(seconds, 0.1))} s"


def _rounded(amount: float) -> str:
    return f"{amount:.0f}" if amount >= 10 else f"{amount:.2g}"
