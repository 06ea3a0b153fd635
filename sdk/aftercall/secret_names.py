"""What a name shows its value, and what values look like secrets (`secret_names.toml`)."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Literal

from aftercall.files import read_table
from aftercall.tables import gather_values

MASKED = re.compile(r"\[(?:redacted|hashed):[a-z]+:[0-9a-f+-]+\]")
"""How a masked value looks."""
Kind = Literal["secret", "likely", "random"]
"""How a name judges its value: secret whatever it is, if it looks like one, if it looks random."""


def snake_case(name: str) -> str:
    """`apiKey`, `API-Key` and `api key` as `api_key`; letters of every script stay."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"[\W_]+", "_", spaced.lower()).strip("_")


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of plain words, longest first, grouped by their first two letters."""
    heads = gather_values((word[:1], word[1:]) for word in sorted(words, key=len, reverse=True))
    return "|".join(
        re.escape(head)
        + (f"(?:{any_of(tails)})" if all(tails) else f"(?:{'|'.join(map(re.escape, tails))})")
        for head, tails in heads.items()
    )


# --- Names ------------------------------------------------------------------------------------
NAME_TABLE = read_table("secret_names.toml")
_ABOUT = frozenset(NAME_TABLE["about"])
WORDS = frozenset(NAME_TABLE["words"])
_METHODS = frozenset(NAME_TABLE["methods"])
NO_SECRETS = WORDS | _METHODS
"""Words that stand instead of a secret and are none."""
_ENDS = tuple(NAME_TABLE["ends"])
_KINDS: tuple[Kind, ...] = ("secret", "likely", "random")
_PHRASES: dict[str, Kind | Literal["harmless"]] = dict.fromkeys(
    NAME_TABLE["harmless"], "harmless"
) | {word: kind for kind in reversed(_KINDS) for word in NAME_TABLE[kind]}
_CORE = re.compile("pass|pwd|secret|token|key|cred(?!it)|auth|cookie|jwt")
_LONGEST = max(phrase.count("_") + 1 for phrase in _PHRASES)


def name_kind(name: str) -> Kind | None:
    """Return what the name of a parameter states of its value; None if it is no secret's name."""
    if len(name) <= _CACHED_NAME_LENGTH:
        return _cached_kind(name)
    return _kind_of(name[:1000])


def _kind_of(name: str) -> Kind | None:
    if not name.isascii() and (match := names_in_texts(ascii_only=False).search(name.lower())):
        phrase = match[0].replace(" ", "_")
        return _PHRASES[phrase]  # type: ignore[return-value]  # none is harmless
    words = snake_case(name).split("_")
    at = 0
    if len(words) > 1 and words[0] in NAME_TABLE["asks"]:
        return None
    found: Kind | None = None
    kind: Kind | Literal["harmless"] | None = None
    while at < len(words):
        size = min(_LONGEST, len(words) - at)
        while size and (phrase := _phrase_of(words[at : at + size])) not in _PHRASES:
            size -= 1
        at += size or 1
        kind = _PHRASES[phrase] if size else None
        # A secret's name counts anywhere, unless the end shows what about it is stated.
        last = at == len(words) or (at == len(words) - 1 and words[at] in NAME_TABLE["numbers"])
        if kind == "secret" and (last or (_CORE.search(phrase) and words[-1] not in _ABOUT)):
            found = kind
        elif kind in ("likely", "random") and last:
            found = found or kind
    return found or ("secret" if kind is None and words[-1].endswith(_ENDS) else None)


def _phrase_of(words: list[str]) -> str:
    """Return words as the table has them: in the singular, but for a lone `tokens`."""
    last = words[-1]
    if last == "tokens" and len(words) == 1:
        return last
    plural = last.endswith("s") and not last.endswith("ss") and last not in _PHRASES
    return "_".join([*words[:-1], last[:-1] if plural else last])


_CACHED_NAME_LENGTH = 64
# The same few names come with every call, and the verdict costs ten times a look-up.
_cached_kind = lru_cache(maxsize=8192)(_kind_of)


def is_secret_value(kind: Kind | None, value: object) -> bool:
    """Return whether a value under a name of this kind is a secret."""
    if kind == "secret" or kind is None:
        return kind is not None
    if isinstance(value, dict | list):
        return kind == "likely"
    text = str(value)
    if kind == "random":
        is_random = isinstance(value, str) and looks_random(text, 16)
        return is_random and not names_place(text)
    if text.lower() in NO_SECRETS:
        return False
    if _PATH.search(text):
        return False
    return bool(re.fullmatch(r"\d{4,12}", text)) or (
        isinstance(value, str) and len(text) >= LEAST and not text.isdecimal()
    )


LEAST = 4
_PATH = re.compile(r"^(?:[/~.\\]|[A-Za-z]:[\\/]|%\w|\$\w|[a-z]+/[\w.-]+(?:/|$))|^\w{1,2}$")
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLACE_PART = re.compile(r"_?[A-Za-z]{2,40}(?:_[A-Za-z]{2,40}){0,8}(?:\[\d{1,6}\])?")
_PLACE_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORD_LENGTH = 3
"""Letters that the words of names have at least, on average; runs of random letters have two."""
_RUNS = re.compile(r"[A-Za-z0-9+/=]+")
_CLASSES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+")


def names_place(text: str) -> bool:
    """Return whether a text is a dotted path of words, such as `CreateShipment.parcels[1].weight`.

    Go's validator prints a parameter's place so, behind `Key:`.
    """
    parts = text.split(".")
    words = _PLACE_WORD.findall(text)
    is_path = len(parts) > 1 and all(map(_PLACE_PART.fullmatch, parts))
    return is_path and sum(map(len, words)) >= _WORD_LENGTH * len(words)


def looks_random(text: str, least: int) -> bool:
    """Return whether a run of letters and digits often changes its kind of character."""
    if len(text) < least:
        return False
    if any(char.isspace() for char in text):
        return False
    if UUID.fullmatch(text):
        return True
    run = max(_RUNS.findall(text), key=len, default="")
    kinds = len(_CLASSES.findall(run))
    return len(run) >= least // 2 and len(set(run)) >= least // 2 and kinds * 5 >= len(run) + 5


def looks_like_password(text: str) -> bool:
    """Letters with a digit or a sign within, or a capital where no sentence has one."""
    if len(text) < LEAST:
        return False
    if _PATH.search(text):
        return False
    if MASKED.search(text):
        return False
    if text.isdecimal():
        return True
    if re.fullmatch(
        r"[\w.-]*\.[a-z]{2,4}|v?\d+(?:[.:-]\d+)*\w?|[a-z]+(?:[_-][a-z0-9]+)*\(?\)?", text
    ):
        return bool(re.fullmatch(r"[a-z]+\d+", text))
    letters = any(char.isalpha() for char in text)
    signs = any(char in "!@#$%^&*?~+=_-" for char in text) or any(c.isdigit() for c in text)
    return letters and (signs or bool(re.search(r"[a-z][A-Z]", text)))


# --- Names in texts ---
def keyword_pattern(words: Iterable[str], ends: Iterable[str] = ()) -> re.Pattern[str]:
    """Words, spelt apart or as one; a compound is found by a last part that is a name itself."""
    spelt = {sep.join(word.split("_")) for word in words for sep in ("_", " ", "-", "")}
    whole = {
        word for word in spelt if not any(part in spelt for part in re.split("[_ -]", word)[1:])
    }
    inside = f"|{any_of(ends)}" if ends else ""
    return re.compile(f"(?<![a-z])(?:{any_of(whole)}){inside}")


IDEOGRAPHS = "\u2e80"
"""From here on, words are not divided."""


def _rare_word(word: str) -> str:
    """Return the word of a compound by which a text is known to hold it: a rare one."""
    return max(word.split("_"), key=lambda part: (part not in _COMMON, len(part)))


_ALL_NAMES = [word for kind in _KINDS for word in NAME_TABLE[kind]]
_COMMON = frozenset(NAME_TABLE["common"])
_SHORT = 2
"""Letters of a word that is too common to be a hint: `no`, `id`."""
ROOTS = {_rare_word(word) for word in _ALL_NAMES} | {word.replace("_", "") for word in _ALL_NAMES}
ROOTS = {word for word in ROOTS - _COMMON if len(word) > _SHORT}
COMPOUNDS = gather_values(
    (parts[-1], {word for word in parts if len(word) > _SHORT})
    for parts in (word.split("_") for word in _ALL_NAMES if _rare_word(word) in _COMMON)
    if len(parts[-1]) > _SHORT
)
GLUED = re.compile(any_of(NAME_TABLE["glued"]))
"""Each name as one word, and of each the longest word: a text has one of them, all the words of a
compound by its last one, or no name."""


@cache
def names_in_texts(*, ascii_only: bool) -> re.Pattern[str]:
    """Find names in a text in lower case: those in ASCII letters, or the others."""
    names = [word for word in _ALL_NAMES if word.isascii() == ascii_only]
    if ascii_only:
        return keyword_pattern(names, [*_ENDS, "pass"])
    spelt = {form for word in names for form in (word, word.replace("_", " "))}
    parted = {word for word in spelt if word.replace("_", "").replace(" ", "").isalpha()}
    parted = {word for word in parted if max(word) < IDEOGRAPHS}
    return re.compile(rf"(?<![^\W_])(?:{any_of(parted)})(?![^\W\d_])|{any_of(spelt - parted)}")


@cache
def compound_pattern() -> re.Pattern[str]:
    """Find names of several words that any text may have."""
    return keyword_pattern(
        word for word in _ALL_NAMES if "_" in word and _rare_word(word) in _COMMON
    )
