"""Where secrets stand behind escapes: of URLs, JSON, HTML and terminals, and in base64.

A text is read as the reader sees it who undoes its escapes, up to three layers of them, and what is
found there is named by its place in the text as it was written. Each layer is at most as long as
the one above it, so that the work grows with the text and no faster.
"""

import base64
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_LAYERS = 3
_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(
    r"""(?P<colour>(?:\x1b|\\(?:u001[bB]|x1[bB]|033|e))\[[0-9;?]{0,40}[A-Za-z])
    | (?P<url>(?:%[0-9A-Fa-f]{2})++)
    | \\(?:u(?P<code>[0-9A-Fa-f]{4}) | U(?P<long>[0-9A-Fa-f]{8}) | u\{(?P<braced>[0-9A-Fa-f]{1,6})\}
        | x(?P<byte>[0-9A-Fa-f]{2}) | (?P<sign>[nrtbfv"'/\\]))
    | (?P<html>&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});)""",
    re.VERBOSE,
)
_FIRST = ("%", "\\", "&", "\x1b")
"""Every escape begins with one of them."""
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}
_LAST_CODE = 0x10FFFF
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])"
    r"(?:(?:[A-Za-z0-9+/]{60,76}\r?\n)++[A-Za-z0-9+/]{2,}+={0,2}|[A-Za-z0-9+/_-]{14,}+={0,2})"
)
_MASKS_HASH = re.compile(r"\[hashed:[a-z]+:\Z")
_LOWER = re.compile("[a-z]")
_UPPER = re.compile("[A-Z]")
"""Base64 of a text has letters in both cases; most words and numbers have not."""
_FROM_URL = str.maketrans("-_", "+/", "\r\n=")
_READABLE = re.compile(rb"[\t\n\r\x20-\x7e]{10,}")
"""Ten characters, for half of a token of a vendor's is no secret; in random bytes such a run is one
in 20,000."""

Find = Callable[[str], list[tuple[int, int]]]
"""Returns where secrets stand in a text without regard to escapes: start and end, in order."""


class EncodedSecret(NamedTuple):
    """A stretch of a text that holds a secret behind escapes."""

    start: int
    end: int
    shown: str
    """What stands there once the escapes around it are undone."""
    within: tuple[str, ...] = ()
    """The secrets in it, where it is base64 and masked whole."""


class _Decoded(NamedTuple):
    """A text without one layer of escapes, and where its parts stood."""

    text: str
    starts: list[int]
    origins: list[int]
    end: int

    def origin_of(self, place: int) -> int:
        if place >= len(self.text):
            return self.end
        part = bisect_right(self.starts, place) - 1
        return self.origins[part] + (place - self.starts[part])


def encoded_secrets(text: str, find: Find, layers: int = MAX_LAYERS) -> list[EncodedSecret]:
    """Return where secrets stand in `text` behind up to so many layers of escapes.

    They come in order and do not overlap.
    """
    secrets = [*_in_base64(text, find, layers)]
    if (decoded := _decode_text(text)) is not None:
        secrets += _behind_escapes(decoded, find, layers)
    return join_overlapping(secrets)


def _behind_escapes(decoded: _Decoded, find: Find, layers: int) -> Iterator[EncodedSecret]:
    inner = [EncodedSecret(*span, decoded.text[slice(*span)]) for span in find(decoded.text)]
    if layers > 1:
        inner += encoded_secrets(decoded.text, find, layers - 1)
    for each in inner:
        start = decoded.origin_of(each.start)
        end = decoded.origin_of(each.end)
        if end > start:
            yield each._replace(start=start, end=end)


def join_overlapping(secrets: list[EncodedSecret]) -> list[EncodedSecret]:
    """Return the stretches of a text in order, those that overlap as one that covers them."""
    apart: list[EncodedSecret] = []
    for each in sorted(secrets, key=lambda secret: (secret.start, -secret.end)):
        if not apart or each.start >= apart[-1].end:
            apart.append(each)
        else:
            last = apart[-1]
            within = (*last.within, *each.within, each.shown)
            apart[-1] = last._replace(end=max(last.end, each.end), within=within)
    return apart


def _decode_text(text: str) -> _Decoded | None:
    if not any(sign in text for sign in _FIRST):
        return None
    parts: list[str] = []
    starts = [0]
    origins = [0]
    length = 0
    last = 0
    for match in _ESCAPE.finditer(text):
        plain = text[last : match.start()]
        parts.append(plain)
        length += len(plain)
        for char, size in _escape_characters(match):
            starts.append(length)
            origins.append(last + len(plain))
            last = last + len(plain) + size
            plain = ""
            parts.append(char)
            length += len(char)
        last = match.end()
        starts.append(length)
        origins.append(last)
    if not parts:
        return None
    return _Decoded("".join(parts) + text[last:], starts, origins, len(text))


def _escape_characters(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Yield the characters of an escape, each with the length of what it is written as."""
    written = match[0]
    if match["url"]:
        for char in bytes.fromhex(written.replace("%", "")).decode(errors="surrogateescape"):
            is_broken = _SURROGATES.match(char)
            yield ("\ufffd", 3) if is_broken else (char, 3 * len(char.encode()))
    elif match["colour"]:
        yield " ", len(written)
    elif match["sign"]:
        yield _SIGNS.get(match["sign"], match["sign"]), len(written)
    elif match["html"]:
        char = html.unescape(written)
        yield (char if len(char) == 1 and not _SURROGATES.match(char) else "\ufffd"), len(written)
    else:
        digits = match["code"] or match["long"] or match["braced"] or match["byte"]
        code = int(digits, 16)
        char = chr(min(code, _LAST_CODE))
        yield ("\ufffd" if _SURROGATES.match(char) else char), len(written)


def _in_base64(text: str, find: Find, layers: int) -> Iterator[EncodedSecret]:
    for match in _BASE64.finditer(text):
        run = match[0]
        if not (_UPPER.search(run) and _LOWER.search(run)) or _MASKS_HASH.search(
            text[: match.start()][-20:]
        ):
            continue
        for readable in _readable_parts(run):
            found = [readable[start:end] for start, end in find(readable)]
            if layers > 1:
                found += [each.shown for each in encoded_secrets(readable, find, layers - 1)]
            if found:
                yield EncodedSecret(*match.span(), run, tuple(found))
                break


def _readable_parts(run: str) -> Iterator[str]:
    """Yield what a run of base64 states, from whichever of its first characters it begins."""
    letters = run.translate(_FROM_URL)
    longest: list[bytes] = []
    for start in range(4):
        part = letters[start:]
        part = part[:-1] if len(part) % 4 == 1 else part  # no byte is so short
        decoded = base64.b64decode(part + "=" * (-len(part) % 4))
        try:
            words = decoded.decode()
        except UnicodeDecodeError:
            words = ""
        if words and words.replace("\n", " ").replace("\t", " ").replace("\r", " ").isprintable():
            yield words
            return
        readable = _READABLE.findall(decoded)
        if sum(map(len, readable)) > sum(map(len, longest)):
            longest = readable
    yield from (part.decode() for part in longest)
