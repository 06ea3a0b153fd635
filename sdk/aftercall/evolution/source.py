"""The source of a tool as text: what an evolver may see of it, and what of its answer is accepted.

Nothing here runs any code. Checks that do are in `aftercall.evolution.checks`.
"""

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Sequence

from aftercall.redaction import Redactor, mask_secrets

MAX_SOURCE_BYTES = 256 * 1024
"""Largest source of a tool that is evolved or accepted; a model's answer ends long before."""

PYTHON = "python"

# Characters that editors do not show and that change what a reader sees (N. Boucher, R. Anderson,
# "Trojan Source", 2021), and control characters beyond tab, line end and form feed.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")

_PLACEHOLDER = re.compile(r"\[redacted:source:(\d{1,6})\]")

_MIN_ECHO = 6
"""Shortest secret that is looked for in other texts; shorter ones occur in any text by chance."""

# Tokens of Python in which a value can be written out. Elsewhere `token = parse(text)` is an
# expression, and hiding a part of it would only spoil the source.
_LITERAL_TOKENS = {tokenize.STRING, tokenize.COMMENT}
if hasattr(tokenize, "FSTRING_MIDDLE"):  # from Python 3.12 on
    _LITERAL_TOKENS.add(tokenize.FSTRING_MIDDLE)


class RejectedCodeError(ValueError):
    """Code that is not accepted; the message says why, for the one who writes it again."""


def language_of(suffix: str) -> str:
    """The language of a script by its suffix, such as `.py`: `python`, or the suffix's letters."""
    return PYTHON if suffix.lower() == ".py" else suffix.lower().removeprefix(".") or "text"


def accept(code: str, *, known: Sequence[str], language: str) -> str:
    r"""The code as it is to be written: lines end in `\n`, the last one too.

    Args:
        code: the candidate.
        known: sources that it must differ from: the one it was made from, the first of all.
        language: as `language_of`; only Python is parsed.

    Raises:
        RejectedCodeError: too large, not UTF-8, with unseen characters, not Python, or but for
            comments and layout the same as a known one.
    """
    clean = _with_plain_ends(code)
    try:
        size = len(clean.encode())
    except UnicodeEncodeError as error:
        raise RejectedCodeError("the code holds characters that UTF-8 cannot write") from error
    if size > MAX_SOURCE_BYTES:
        raise RejectedCodeError(f"the code has {size:,} bytes; at most {MAX_SOURCE_BYTES:,}")
    if unseen := _UNSEEN.search(clean):
        line = clean.count("\n", 0, unseen.start()) + 1
        raise RejectedCodeError(
            f"line {line} holds the unseen character U+{ord(unseen[0]):04X}; write it as an escape"
        )
    meaning = _meaning(clean, language)
    for source in known:
        try:
            is_same = meaning == _meaning(_with_plain_ends(source), language)
        except (RejectedCodeError, UnicodeEncodeError):
            is_same = False  # what is wrong with the source may be its syntax
        if is_same:
            raise RejectedCodeError("the code does the same as before; change what makes it fail")
    return clean


def _with_plain_ends(code: str) -> str:
    return code.replace("\r\n", "\n").replace("\r", "\n").strip("\n") + "\n"


def _meaning(code: str, language: str) -> str:
    """The code without comments and layout, as far as its language is known."""
    if language != PYTHON:
        return "\n".join(line.rstrip() for line in code.strip().splitlines())
    # As bytes, for a coding comment counts when the file is run. Compiling finds what parsing lets
    # pass, such as `return` outside a function; neither runs anything.
    content = code.encode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(content)
            compile(content, "<candidate>", "exec", dont_inherit=True)
            if not tree.body:
                raise RejectedCodeError("the code holds no statement")
            return ast.dump(tree)
        except SyntaxError as error:
            where = "" if error.lineno is None else f" at line {error.lineno}"
            raise RejectedCodeError(f"the code is no Python{where}: {error.msg}") from error
        except (RecursionError, MemoryError) as error:
            raise RejectedCodeError(
                f"the code cannot be parsed ({type(error).__name__}); nest it less deeply"
            ) from error


class HiddenValues:
    """The secrets of one source: the evolver sees placeholders, the new version gets the values.

    A placeholder, such as `[redacted:source:2]`, has the form of any masked value, so that nothing
    masks it again.
    """

    def __init__(self, source: str, *, language: str, redactor: Redactor | None) -> None:
        self._values: list[str] = []
        self._redactor = redactor
        # Above those that the source itself speaks of.
        self._first = max((int(n) + 1 for n in _PLACEHOLDER.findall(source)), default=0)
        self._literals = _literals(source) if language == PYTHON else None
        self.source = source if redactor is None else mask_secrets(source, self._placeholder)

    def hide(self, text: str) -> str:
        """Any other text without the secrets of the source, and without secrets of its own."""
        if self._redactor is None:
            return text
        for number, value in enumerate(self._values, self._first):
            if len(value) >= _MIN_ECHO:
                text = text.replace(value, f"[redacted:source:{number}]")
        return self._redactor.text(text)

    def restore(self, code: str) -> str:
        """Code with the values in place of their placeholders.

        Raises:
            RejectedCodeError: it holds a placeholder that was never given.
        """

        def value(match: re.Match[str]) -> str:
            number = int(match[1]) - self._first
            if number < 0 and match[0] in self.source:
                return match[0]
            if not 0 <= number < len(self._values):
                raise RejectedCodeError(f"{match[0]} stands for nothing in the present source")
            return self._values[number]

        return code if self._redactor is None else _PLACEHOLDER.sub(value, code)

    def _placeholder(self, value: str) -> str:
        if self._literals is not None and not any(value in text for text in self._literals):
            return value
        if value not in self._values:
            self._values.append(value)
        return f"[redacted:source:{self._first + self._values.index(value)}]"


def _literals(source: str) -> list[str] | None:
    """The strings and comments of Python source; None when it cannot be read."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return [token.string for token in tokens if token.type in _LITERAL_TOKENS]
