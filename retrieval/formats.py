"""Text forms that tools ask for: times and dates, rewritten without changing what they say."""

import re
from datetime import date, datetime, time

_CLOCK = re.compile(
    r"(?P<h>\d{1,2})(?::(?P<m>\d{2}))?(?::(?P<s>\d{2})(?:\.\d+)?)?\s*(?P<half>[ap]\.?m\.?)?(?:\s*h)?",
    re.IGNORECASE,
)
_NAMED = {
    "hh:mm": "%H:%M", "hh:mm:ss": "%H:%M:%S", "%h:%m": "%H:%M", "yyyy-mm-dd": "%Y-%m-%d",
    "%y-%m-%d": "%Y-%m-%d", "date": "%Y-%m-%d", "time": "%H:%M:%S", "dd/mm/yyyy": "%d/%m/%Y",
    "mm/dd/yyyy": "%m/%d/%Y", "yyyy/mm/dd": "%Y/%m/%d", "yyyymmdd": "%Y%m%d",
}  # fmt: skip
# Only forms that read one way: 03/04/2025 is two different days and is left alone.
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d %B %Y", "%B %d, %Y", "%B %d %Y",
          "%d %b %Y", "%b %d, %Y", "%b %d %Y")  # fmt: skip


def rewrite(text: str, wanted: str) -> str | None:
    """`text` in the form `wanted` (`HH:MM`, `YYYY-MM-DD`, ...); None when that would be a guess."""
    form = _NAMED.get(wanted.strip().lower())
    if form is None:
        return None
    if "%H" in form:
        moment = _clock(text)
        return moment.strftime(form) if moment else None
    day = _day(text)
    return day.strftime(form) if day else None


def _clock(text: str) -> time | None:
    text = text.strip()
    if re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", text):
        text = text[11:].split("+")[0].rstrip("Zz")
    if re.fullmatch(r"([01]\d|2[0-3])[0-5]\d", text):
        text = f"{text[:2]}:{text[2:]}"
    found = _CLOCK.fullmatch(text)
    if not found or not (found["m"] or found["half"]):
        return None
    hour, minute = int(found["h"]), int(found["m"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    if hour == 24 and minute == 0:
        hour = 0  # ISO 8601-1:2004 writes the end of the day as 24:00
    try:
        return time(hour, minute, int(found["s"] or 0))
    except ValueError:
        return None


def _day(text: str) -> date | None:
    text = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text.strip())
    if re.match(r"\d{4}-\d\d-\d\d[T ]", text):
        text = text[:10]
    for form in _DATES:
        try:
            return datetime.strptime(text, form).date()  # noqa: DTZ007 - a day has no zone
        except ValueError:
            continue
    return None
