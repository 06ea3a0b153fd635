"""Which tool to call first: the registered one that does what the message asks for. Pure."""

import re
from collections.abc import Iterable

from retrieval.identifiers import words_of

_READ = 500
_MAX_TOOLS = 2_000
# Ways to say that somebody has to log in, as tools are named for it.
_LOGIN = re.compile(r"log(?:ged)? ?in|sign(?:ed)? ?in|authenticat", re.IGNORECASE)
_LOGIN_NAMES = re.compile(r"log_?in|sign_?in|authenticate|^auth$|_auth$", re.IGNORECASE)
_ENDINGS = ("ing", "ed", "es", "s", "e")
_MIN_STEM = 3


def first_tool(message: str, failed: str, names: Iterable[str]) -> str | None:
    """The one tool whose name says what the message asks for; None when none or several do.

    `startEngine` is named by "the engine must be started", `user_login` by "must be logged in".

    Args:
        message: what the tool said.
        failed: the tool that failed; it is not called first.
        names: registered tools of the same server.
    """
    text = message[:_READ]
    said = {_stem(word) for word in words_of(text)}
    wants_login = _LOGIN.search(text) is not None
    found = []
    for name, _ in zip(names, range(_MAX_TOOLS), strict=False):
        words = [_stem(word) for word in words_of(name)]
        is_login = wants_login and _LOGIN_NAMES.search("_".join(words_of(name))) is not None
        if name != failed and (is_login or (len(words) >= 2 and said.issuperset(words))):
            found.append(name)
    return found[0] if len(found) == 1 else None


def _stem(word: str) -> str:
    """A word without its usual endings: `started`, `starting` and `starts` are `start`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            word = word.removesuffix(ending)
            return word[:-1] if word[-2:] in ("tt", "pp", "nn", "gg", "mm") else word
    return word
