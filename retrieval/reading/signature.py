"""Signatures: a message with its variable parts masked, the key under which like errors meet."""

import re
from collections.abc import Collection

MAX_LENGTH = 400
"""Characters of a signature; what follows tells like errors apart no further."""

# Frames that servers put around a tool's own words.
_FRAMES = re.compile(
    r"^(?:Error (?:executing|calling) tool \S+: |Error: |MCP error -?\d+: |"
    r"\w*(?:Error|Exception): (?=\S))+"
)
_BOILERPLATE = re.compile(
    r"\n?\s*For further information visit \S+|, input_value=[^\n]*, input_type=\w+(?=\])"
)

_MASKS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\[(?:redacted|hashed):[^\]\s]+\]"), "<v>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s'\"`<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\b"), "<email>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
     "<date>"),
    (re.compile(r"(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@%+~-]+){2,}/?|\b[A-Z]:\\[^\s'\"]+"), "<path>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*(?![\w])"), "<n>"),
]  # fmt: skip
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`")


def strip_frames(message: str) -> str:
    """The tool's own words: without server frames and boilerplate, spaces folded per line."""
    text = _FRAMES.sub("", _BOILERPLATE.sub("", message.strip()))
    return re.sub(r"[ \t]+", " ", text)


def signature_of(message: str, *, names: Collection[str] = (), values: Collection[str] = ()) -> str:
    """The message with its variable parts masked.

    Args:
        message: what the tool said.
        names: parameter names; they stay, also in quotation marks.
        values: the call's own values as text; they are masked wherever they stand.
    """
    text = strip_frames(message[: 4 * MAX_LENGTH])
    said = {value for value in values if len(value) >= 3 and value in text}
    for value in sorted(said, key=lambda value: (-len(value), value)):
        if value not in names:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "<v>", text)
    text = _QUOTED.sub(lambda match: _mask_quoted(match, names), text)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    text = re.sub(r"<v>(?:,? ?(?:and |or )?<v>)+", "<v>", text)
    return re.sub(r"\s+", " ", text).strip()[:MAX_LENGTH]


def without_values(message: str, values: Collection[str]) -> str:
    """The message without the call's own values, so that an echo does not decide what it means.

    A value that is a plain word or number may be the tool's own word too (`timeout`, `404`): it is
    taken out only where a quotation mark, `=` or `:` stands before it.
    """
    said = [value for value in values if len(value) >= 3 and value in message]
    for value in sorted(said, key=lambda value: (-len(value), value)):
        before = r"(['\"`=:] ?)" if value.isalnum() else r"(?<!\w)()"
        message = re.sub(rf"{before}{re.escape(value)}(?!\w)", r"\1<v>", message)
    return message


def _mask_quoted(match: re.Match[str], names: Collection[str]) -> str:
    inner = match[1] or match[2] or match[3] or ""
    return match[0] if inner in names else "<v>"
