"""Numbers, times, names and words of others as pages write them. Pure.

All words of tools and callers are bounded by `escape_hidden` or `format_line`. Nothing here masks
secrets, and nothing makes markup.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from aftercall.json_values import JsonValue
from aftercall.models import CallCounts, ExecutionError, ToolName, UsageWindow

WINDOWS: Final[dict[UsageWindow, str]] = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}
MAX_NAME: Final = 256
"""Characters of a tool's, an agent's or an axis' name; the wire takes no more."""
MAX_SENTENCE: Final = 1_000
"""Characters of what someone stated, where a page quotes it."""
MAX_TEXT: Final = 20_000
"""Characters of any text on a page, such as corrected parameters."""
MAX_SIGNATURE: Final = 300
"""Characters of an error's wording in a table or a heading; its own page shows it whole."""
SAME_CALL: Final = "Nothing was changed: the same call worked when it was made again."
ORIGINS: Final = {
    "moved": "moved",
    "recoded": "the same in another form",
    "stated": "stated by the error, the schema or the task",
    "own": "from the caller's own session",
    "setting": "a setting that was learned",
    "unexplained": "not explained by anything",
}
"""Where a value of a repaired call comes from (`AccountedValue.origin`)."""
_READ: Final = 20
"""Times the limit that is looked at: what is beyond can hardly become visible within it."""


def format_count(value: int) -> str:
    """Return a number as `12,345`."""
    return f"{value:,}"


def format_noun(value: int, noun: str) -> str:
    """Return a number with its noun: `1 call`, `12,345 calls`."""
    ending = "" if value == 1 else "s"
    return f"{format_count(value)} {noun}{ending}"


def format_percent(share: float | None) -> str:
    """Return a share in [0, 1] as `94.0 %`, `> 99.9 %` where it is not all; `-` for None."""
    if share is None:
        return "-"
    return "> 99.9 %" if 0.9995 <= share < 1 else f"{share * 100:.1f} %"


def format_score(value: float | None, digits: int = 2) -> str:
    """Return a score as `0.83`; `-` for None."""
    return "-" if value is None else f"{value:,.{digits}f}"


def format_duration(milliseconds: float | None) -> str:
    """Return a duration as `8.0 ms`, `2.3 s`, `4.0 min` or `1.5 h`; `-` for None."""
    if milliseconds is None:
        return "-"
    if milliseconds < 1_000:
        return f"{milliseconds:.{1 if milliseconds < 10 else 0}f} ms"
    seconds = milliseconds / 1_000
    for unit in ("s", "min"):
        if seconds < 120:
            return f"{seconds:.1f} {unit}"
        seconds /= 60
    return f"{seconds:.1f} h"


def format_moment(at: datetime | None) -> str:
    """Return a time as `2026-11-22 14:05`, in UTC; `-` for None."""
    return "-" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def label_axis(moments: Sequence[datetime]) -> list[str]:
    """Return labels of points in time, in UTC: `22 14:00` for steps of an hour, else `11-22`."""
    by_hour = len(moments) > 1 and moments[1] - moments[0] < timedelta(days=1)
    form = "%d %H:%M" if by_hour else "%m-%d"
    labels: list[str] = []
    for moment in moments:
        at = moment.astimezone(UTC)
        labels.append(at.strftime(form))
    return labels


def format_window(window: UsageWindow) -> str:
    """Return a window as `24 hours`, or `2026-11-01 to 2026-11-07`."""
    return WINDOWS.get(window) or window.replace("..", " to ").replace("T", " ")


def format_within(window: UsageWindow) -> str:
    """Return a window as `in the last 24 hours`, or `from 2026-11-01 to 2026-11-07`."""
    return (
        f"in the last {format_window(window)}"
        if window in WINDOWS
        else f"from {format_window(window)}"
    )


def format_before(earlier: CallCounts | None) -> str:
    """Return `before: 93.1 % of 1,204` for the span before; "" if it had no calls."""
    if earlier is None or not count_calls(earlier):
        return ""
    return (
        f"before: {format_percent(success_rate(earlier))} of {format_count(count_calls(earlier))}"
    )


def count_calls(counts: CallCounts) -> int:
    """Return the number of all calls, successes and failures."""
    return counts.successes + counts.failures


def success_rate(counts: CallCounts) -> float | None:
    """Return the share of calls that succeeded, in [0, 1]; None without calls."""
    return counts.successes / count_calls(counts) if count_calls(counts) else None


def fold_names(names: Iterable[str]) -> str:
    """Return different names in their order, at most three of them: `a, b, c and 47 more`."""
    different = list(dict.fromkeys(names))
    more = len(different) - 3
    words = ", ".join(different[:3])
    if more <= 0:
        return words
    return f"{words} and {format_count(more)} more"


def format_tool(tool: ToolName) -> str:
    """Return the name under which the calls of a tool are recorded: `server/tool`, or `tool`."""
    name = tool.tool_name if tool.server_name is None else f"{tool.server_name}/{tool.tool_name}"
    return format_line(name, 2 * MAX_NAME)


def error_words(error: ExecutionError) -> str:
    """Return type, code and message of an error."""
    code = f" ({error.code})" if error.code else ""
    return escape_hidden(f"{error.type}{code}: {error.message}", 2 * MAX_SENTENCE)


def escape_hidden(text: str, limit: int = MAX_TEXT) -> str:
    r"""Return a text of at most `limit` characters, with escapes for hidden characters.

    Changes of direction and zero-width characters can make a text read as another one, so they are
    written (`\u202e`) instead of being drawn. Line ends and tabs stay.
    """
    text = text[: _READ * limit].replace("\r\n", "\n")
    if not (text.isascii() and text.isprintable()):
        text = "".join(
            char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
            for char in text
        )
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def format_line(text: str, limit: int = MAX_NAME) -> str:
    """Return the same, with every run of white space as one blank."""
    return escape_hidden(" ".join(text[: _READ * limit].split()), limit)


def as_json(value: JsonValue, limit: int = MAX_TEXT) -> str:
    """Return a value as indented JSON of at most `limit` characters, as `escape_hidden` does."""
    return escape_hidden(json.dumps(value, indent=2, ensure_ascii=False), limit)
