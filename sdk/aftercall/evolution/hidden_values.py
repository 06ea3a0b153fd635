"""Secrets in a source file: the evolver sees placeholders, the new version gets the values back."""

import io
import re
import tokenize

from aftercall.evolution.acceptance import PYTHON, RejectedCodeError
from aftercall.redaction import Redactor
from aftercall.redaction.secret_forms import mask_secrets

_PLACEHOLDER = re.compile(r"\[redacted:source:(\d{1,6})\]")

_MIN_ECHO = 6
"""Shortest secret that is looked for in other texts; shorter ones occur in any text by chance."""

# Tokens of Python in which a value can be written out. Elsewhere `token = parse(text)` is an
# expression, and hiding a part of it would only spoil the source.
_LITERAL_TOKENS = {tokenize.STRING, tokenize.COMMENT}
if hasattr(tokenize, "FSTRING_MIDDLE"):  # from Python 3.12 on
    _LITERAL_TOKENS.add(tokenize.FSTRING_MIDDLE)


class HiddenValues:
    """The secrets of one source, and the placeholders that stand for them.

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
