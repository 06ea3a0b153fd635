"""Likeness: near values, synonyms, and names that mean the same."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal
from unicodedata import combining, normalize

from rapidfuzz.distance import DamerauLevenshtein, JaroWinkler

from aftercall.change_classes import are_opposites
from retrieval import WORDS, read_word_table

_SEPARATORS = re.compile(r"[\s_-]+")
DENYING = frozenset(("not", "no", "non", "un", "without", "except", "never", "or", "and"))


def _index_groups(groups: list[str]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for number, group in enumerate(groups):
        for word in group.split():
            flat = _SEPARATORS.sub("", word.lower())
            found[flat] = found.get(flat, frozenset()) | {number}
    return found


_NO_GROUPS: frozenset[int] = frozenset()


def _share_group(groups: dict[str, frozenset[int]], one: str, other: str) -> bool:
    mine, its = (
        groups.get(word, groups.get(word.removesuffix("s"), _NO_GROUPS)) for word in (one, other)
    )
    return not mine.isdisjoint(its)


_SYNONYMS = read_word_table("knowledge/values/synonyms.toml")
_SAME_VALUES, _LIKE_VALUES = map(
    _index_groups, (_SYNONYMS["values"]["same"], _SYNONYMS["values"]["like"])
)
_SAME_WORDS, _SAME_NAMES = map(
    _index_groups, (_SYNONYMS["names"]["words"], _SYNONYMS["names"]["whole"])
)


def refers_by_words(text: str, name: str) -> bool:
    """Return whether a text refers to a value by words, such as `my_order_id`."""
    words = set(words_of(text))
    return bool(words) and words <= WORDS["references"] | set(words_of(name))


_SEVERAL = re.compile(r"[,;|\n]|\s(?:and|or|und|y|et)\s|&")


def may_be_several(text: str) -> bool:
    """Return whether a text may stand for more than one thing, though it cannot be shown which."""
    return _SEVERAL.search(text) is not None


_MAX_TEXT = 200
_MAX_KNOWN = 2_000
_DIGITS = re.compile(r"\d+")


Nearness = Literal["same", "last", "slip", "slips", "start", "cut"]
"""How a text is near a value: equal up to case and separators; the last part of a path-like value,
or its name without the ending; one letter wrong, or two; the start of the other; with more behind
it."""


def nearest_value(text: str, known: Sequence[str]) -> tuple[str, Nearness] | None:
    """Return the known value that `text` most likely means, and how it is near; None when unclear.

    A tie between two different values is unclear, and so are one slip and the last part of another.
    Values that differ in a digit name different things (`acct-12`, `acct-13`), however alike they
    look. Only the first 2,000 known values count, and no text longer than 200 characters.
    """
    flat = _flatten_text(text)
    if not flat:
        return None
    if len(text) > _MAX_TEXT:
        return None
    near = [
        (how, value)
        for value in known[:_MAX_KNOWN]
        if len(value) <= _MAX_TEXT and (how := _how_near(flat, value)) is not None
    ]
    ranked = sorted(near, key=lambda each: (_RANKS[each[0]], each[1]))
    if not ranked:
        return None
    how, value = ranked[0]
    if how == "cut" and may_be_several(text) and not may_be_several(value):
        return None  # the first of several is not what they mean
    begun = [other for other in known[:_MAX_KNOWN] if _flatten_text(other).startswith(flat)]
    if begun and value not in begun and flat.startswith(_flatten_text(value)):
        return None  # a letter too many, or the start of another one
    if len(ranked) > 1 and _RANKS[ranked[1][0]] == _RANKS[how] and ranked[1][1] != value:
        return None
    if are_opposites(text, value):
        return None
    return (value, how)


def most_similar_value(text: str, listed: Sequence[str]) -> str | None:
    """Return the one possible value that a badly misspelt text clearly resembles."""
    flat = _flatten_text(text)
    ranked = sorted(
        (DamerauLevenshtein.normalized_distance(flat, _flatten_text(value)), value)
        for value in listed[:_MAX_KNOWN]
    )
    if len(flat) < _MISSPELT:
        return None
    if len(ranked) < 2:
        return None
    if ranked[0][0] > _HALF:
        return None
    is_clear = ranked[1][0] - ranked[0][0] >= _MARGIN and not differ_in_digits(flat, ranked[0][1])
    if not is_clear:
        return None
    if are_opposites(text, ranked[0][1]):
        return None
    return ranked[0][1]


_MISSPELT = 4
_HALF = 0.45
_MARGIN = 0.3
"""Letters of such a text, the share of them that may be wrong, and how much more in all others."""
_RANKS: dict[Nearness, int] = {"same": 0, "last": 1, "slip": 1, "slips": 2, "start": 3, "cut": 4}


def _has_same_meaning(groups: dict[str, frozenset[int]], text: str, value: str) -> bool:
    """Return whether a text and a value are in one group, as a whole or word by word."""
    if _share_group(groups, _flatten_text(text), _flatten_text(value)):
        return True
    one = words_of(text[:_MAX_NAME])
    two = words_of(value[:_MAX_NAME])
    several = len(one) == len(two) > 1
    return several and all(
        a == b or _share_group(groups, a, b) for a, b in zip(one, two, strict=True)
    )


def with_synonyms(unit: str) -> frozenset[str]:
    """Return a unit in its singular and plural, and the words that mean the same."""
    of_unit = _SAME_VALUES.get(unit, _NO_GROUPS)
    same = (word for word, groups in _SAME_VALUES.items() if not groups.isdisjoint(of_unit))
    return frozenset({unit, unit.removesuffix("s"), *same})


def synonym_of(text: str, known: Sequence[str]) -> tuple[str, bool] | None:
    """Return the only known synonym of `text`, and whether it means just the same."""
    for groups, exact in ((_SAME_VALUES, True), (_LIKE_VALUES, False)):
        found = {each for each in known[:_MAX_KNOWN] if _has_same_meaning(groups, text, each)}
        if found:
            if len(found) == 1:
                return (found.pop(), exact)
            return None
    return None


def find_abbreviated(text: str, known: Sequence[str]) -> str | None:
    """Return the only known code whose letters a word has in their order: `GK` of `goalkeeper`."""
    word = text.lower() if text.isalpha() and _SHORT_CODE < len(text) <= _MAX_NAME else ""
    found = [each for each in known[:_MAX_KNOWN] if _stands_in(each.lower(), word)]
    coded = all(each.isupper() and len(each) <= _SHORT_CODE for each in known[:_MAX_KNOWN])
    if len(found) == 1 and coded and known:
        return found[0]
    return None


_SHORT_CODE = 3


def _stands_in(code: str, word: str) -> bool:
    letters = iter(word[1:])
    return code[:1] == word[:1] and all(letter in letters for letter in code[1:])


def named_in(text: str, known: Sequence[str]) -> str | None:
    """Return the only known value whose words a short text holds next to others.

    `open` of `State.OPEN`.
    """
    words = words_of(text[:_MAX_NAME])
    flat = _flatten_text(text)
    if not DENYING.isdisjoint(words):
        return None
    if len(text.split()) > _MAX_LABEL:
        return None
    if any(_flatten_text(value).startswith(flat) for value in known[:_MAX_KNOWN]):
        return None  # it is the start of another one
    found = {}
    for value in known[:_MAX_KNOWN]:
        parts = words_of(value[:_MAX_NAME])
        size = len(parts)
        if 0 < size < len(words):
            places = [at for at in range(len(words)) if words[at : at + size] == parts]
            if places:
                found[value] = places
    longest = max(found, key=lambda value: len(words_of(value)), default=None)
    inside = set(words_of(longest or ""))
    alone = all(set(words_of(value)) <= inside for value in found)
    if longest and alone and len(found[longest]) == 1:
        return longest
    return None


def differ_in_digits(left: str, right: str) -> bool:
    """Return whether two texts hold different numbers, and so name different things."""
    return _DIGITS.findall(left) != _DIGITS.findall(right)


def _flatten_text(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return _SEPARATORS.sub("", text.strip().lower())
    return ""


def _how_near(flat: str, value: str) -> Nearness | None:
    other = _flatten_text(value)
    if not other or flat == other:
        return "same" if other else None
    ends = (re.split(r"[/.:]", value)[-1], value.rpartition(".")[0])
    if flat in map(_flatten_text, ends):
        return "last"
    if flat.strip("./\\") == other:
        return "last"
    if differ_in_digits(flat, other):
        return None
    allowed = 0 if len(flat) < 4 else 1 if len(flat) < 8 else 2
    distance = DamerauLevenshtein.distance(flat, other, score_cutoff=allowed)
    is_other_word = abs(len(flat) - len(other)) > 1 and (
        flat.endswith(other) or other.endswith(flat)
    )  # weekly and biweekly, active and reactive: no slip adds a syllable in front
    if distance <= allowed and not is_other_word:
        return "slip" if distance == 1 else "slips"
    if len(flat) >= 3 and other.startswith(flat):
        return "start"
    return "cut" if len(flat) >= 3 and flat.startswith(other) else None


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of an identifier: `sourceTimeZone` and `source_time_zone` give the same."""
    if len(name) <= _MAX_NAME:
        return _split_words(name)
    return _split_words.__wrapped__(name)


@lru_cache(8_192)
def _split_words(name: str) -> tuple[str, ...]:
    if not name.isascii():  # `dirección` is `direccion`
        name = "".join(c for c in normalize("NFKD", name.replace("ß", "ss")) if not combining(c))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return tuple(re.findall(r"[a-z0-9]+", spaced.lower()))


_MAX_NAME = 80
_MAX_LABEL = 4
_JOINING = frozenset(("of", "for", "the"))
"""Words that turn a name round: `owner_of_item` is the `item_owner`."""
_SYNONYM = 0.85
# An id and what it is the id of share a name, and only the value shows which of them is there.
_IDS = frozenset(("id", "ids", "uuid", "key"))
_NUMBERS = _IDS | {"number", "no", "ref", "reference", "code"}
_ID_OR_THING = 0.6
_COULD_BE_MEANT = 0.5
_SAME_START = 0.8
"""Likeness below which no name is taken for the other."""
_ALIKE = 0.65
"""Likeness below which two words are other words."""
_UNLIKE = frozenset(
    map(frozenset, read_word_table("knowledge/values/words.toml")["groups"]["unlike"])
)


def relates_otherwise(name: str, other: str) -> bool:
    """Return whether a name states another relation than to be equal.

    `price_lt` and `except_id`.
    """
    words = words_of(name[:_MAX_NAME])
    return len(words) > 1 and not WORDS["compares"].isdisjoint(
        {*words} - {*words_of(other[:_MAX_NAME])}
    )


def negates_name(name: str, other: str) -> bool:
    """Return whether one flag states no to what the other states yes to.

    `exclude_views`, `include_views`.
    """
    one, two = (set(words_of(each[:_MAX_NAME])) for each in (name, other))
    signs = WORDS["negating"] | WORDS["affirming"]
    said = one - signs
    denied = [not each.isdisjoint(WORDS["negating"]) for each in (one, two)]
    return said == two - signs and bool(said) and denied[0] != denied[1]


def _mean_different_things(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    only_a = set(a) - set(b)
    only_b = set(b) - set(a)
    if len(only_a) == 1 and len(only_b) == 1 and frozenset(only_a | only_b) in _UNLIKE:
        return True
    if not _IDS.isdisjoint({*a} & {*b}) and only_a and only_b:
        # The id of another thing, unless the two things are one.
        return not any(_word_similarity(x, y) > 0 for x in only_a for y in only_b)
    aspects_a = only_a & WORDS["aspects"]
    aspects_b = only_b & WORDS["aspects"]
    if aspects_a and aspects_b:
        # `tz_source` against `target_tz`; an abbreviation (`min`, `minimum`) is the same aspect.
        return not any(_word_similarity(x, y) >= 0.8 for x in aspects_a for y in aspects_b)
    if not (aspects_a or aspects_b):
        return False
    # One name has the aspect alone: another thing when the other name is all the rest of it.
    aspects, rest = (aspects_a, only_b) if aspects_a else (aspects_b, only_a)
    return not rest and not aspects <= WORDS["harmless"]


def name_similarity(left: str, right: str) -> float:
    """Return how likely two parameter names mean the same, 0 to 1.

    1 is equal up to case and separators.

    Equal words count most, then listed synonyms and translations (`synonyms.toml`), abbreviations
    (`tz` of `timezone`), then spelling (Jaro-Winkler). A word that makes another thing of it
    (`page` and `page_size`) or its opposite (`min_price` and `max_price`) makes it 0, however alike
    the rest is.
    """
    return _name_similarity(left[:_MAX_NAME], right[:_MAX_NAME])


@lru_cache(8_192)
def _name_similarity(left: str, right: str) -> float:
    a, b = words_of(left), words_of(right)
    if not a or not b:
        return 0.0
    if "".join(a) == "".join(b):
        return 1.0
    if set() != {*a} - _JOINING == {*b} - _JOINING:
        return 0.95
    if _share_group(_SAME_NAMES, "".join(a), "".join(b)):
        return _SYNONYM
    if _mean_different_things(a, b) or relates_otherwise(left, right):
        return 0.0
    if len(a) == 1 and len(b) > 1 and a[0] == "".join(word[0] for word in b):
        return _SYNONYM
    shared = _match_words(a, b)
    spelling = JaroWinkler.similarity("".join(a), "".join(b))
    mine, its = "".join(w for w in a if w not in b), "".join(w for w in b if w not in a)
    is_id = not _NUMBERS.isdisjoint((mine, its))
    if mine and its and not is_id and JaroWinkler.similarity(mine, its) < _ALIKE:
        spelling *= _SAME_START  # `donor_name` and `donor_email` are alike in what they share
    if not shared and a[0][0] != b[0][0]:
        spelling *= _SAME_START  # a slip is seldom in the first letter: `reason` is no `season`
    containment = shared / min(len(a), len(b))
    coverage = shared / max(len(a), len(b))
    by_words = 0.55 * containment + 0.4 * coverage
    likeness = max(by_words, spelling if spelling >= 0.85 else 0.6 * spelling)
    if likeness >= _COULD_BE_MEANT and are_opposites(left, right):
        return 0.0
    return min(likeness, _ID_OR_THING) if {*a} ^ {*b} <= _IDS else likeness


def _match_words(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    rest = list(long)
    total = 0.0
    for word in short:
        best = max(rest, key=lambda other: _word_similarity(word, other), default=None)
        if best is not None and (score := _word_similarity(word, best)) > 0:
            total += score
            rest.remove(best)
    return total


def _word_similarity(a: str, b: str) -> float:
    if a == b:
        return 1.0
    if _share_group(_SAME_WORDS, a, b):
        return 0.9
    short, long = sorted((a, b), key=len)
    if long.rstrip("s") == short.rstrip("s"):
        return 0.98
    if long.startswith(short):
        if len(short) >= 2:
            return 0.9
        return 0.6
    letters = iter(long)  # `tz` of `timezone`; `id` is a word of its own, and none of `insured`
    if (
        len(short) >= 2
        and short not in _IDS
        and short[0] == long[0]
        and all(char in letters for char in short)
    ):
        return 0.8
    is_slip = len(short) >= 4 and a[0] == b[0] and DamerauLevenshtein.distance(a, b) == 1
    if is_slip:
        return 0.75
    return 0.0


def is_portion(name: str) -> bool:
    """Return whether a parameter states how much is wanted at a time, such as `limit` or `topK`."""
    return not WORDS["portions"].isdisjoint(words_of(name))


_SOMEWHAT = 0.45
_CLEARLY = 0.2
"""Likeness of the likest name, and what it is ahead of the next one."""
_MAX_NAMES = 100


def best_matches(names: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Return the names that are more alike to one another than either is to any third.

    Of a few of each.
    """
    found: dict[str, str] = {}
    if max(len(names), len(others)) > _MAX_NAMES:
        return found
    for name in names:
        likest = _most_similar_name(name, others)
        if likest is not None and _most_similar_name(likest, names) == name:
            found[name] = likest
    return found


def _most_similar_name(name: str, others: Sequence[str]) -> str | None:
    ranked = sorted(((name_similarity(name, other), other) for other in others), reverse=True)
    if not ranked:
        return None
    if ranked[0][0] < _SOMEWHAT:
        return None
    second = ranked[1][0] if len(ranked) > 1 else 0.0
    if ranked[0][0] - second >= _CLEARLY:
        return ranked[0][1]
    return None


_SHOWN_BY_NAME = 0.7
"""Likeness of two names from which on the one shows the other: its spelling, a word of it, or one
of the listed abbreviations and synonyms."""
_OF_IDS = frozenset(("id", "ids", "uuid", "key", "keys", "number", "ref"))
_ABBREVIATED = 0.65
"""Share of a word's letters up to which some of them, in order, are short for it."""
_OTHER_WORD = 0.5
_CONTENTS = frozenset(("string", "str", "text", "value", "content"))
"""Words for what a text parameter holds."""
_WHICH = WORDS["aspects"] - WORDS["harmless"] - _CONTENTS | frozenset(
    (
        "base",
        "head",
        "default",
        "current",
        "previous",
        "next",
        "backup",
        "alternate",
        "primary",
        "secondary",
        "fallback",
        "original",
        "other",
        "parent",
        "home",
        "work",
    )
)
"""Words that say which of several things: `base_branch` is not the branch that is meant."""
_OF_ITSELF = frozenset(
    (
        *WORDS["harmless"],
        "value",
        "string",
        "address",
        "path",
        "list",
        "data",
        "field",
        "param",
        "parameter",
        "input",
        "content",
        "contents",
        "uri",
        "url",
        "body",
        "query",
        "term",
        "file",
    )
)
"""Last words that add nothing: `recipient_address` is the recipient, `recipient_bank` a bank."""


def names_the_same(source: str, target: str) -> bool:
    """Return whether one name shows the other; in an id a slip (`contact`) shows nothing."""
    a = words_of(source)
    b = words_of(target)
    if "".join(a) == "".join(b):
        return True
    if are_opposites(source, target):
        return False
    if name_similarity(source, target) < _SHOWN_BY_NAME:
        return False
    is_id = not _OF_IDS.isdisjoint(a)
    if {*a} - _CONTENTS == {*b} - _CONTENTS and len({*a} & {*b}) == 1 < len(a) == len(b):
        return True  # `old_string` is `oldText`
    if set(a) <= set(b) or set(b) <= set(a):
        longer = max(a, b, key=len)
        more = {*a} ^ {*b}
        return more.isdisjoint(_WHICH) and (longer[-1] not in more or longer[-1] in _OF_ITSELF)
    short, long = sorted((set(a) - set(b), set(b) - set(a)), key=len)
    matched = all(any(_same_word(one, other, is_id=is_id) for other in long) for one in short)
    return matched or (not is_id and DamerauLevenshtein.distance("".join(a), "".join(b)) == 1)


def _singular_word(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word.rstrip("s")


def _same_word(one: str, other: str, *, is_id: bool) -> bool:
    short, long = sorted((one, other), key=len)
    if _singular_word(long) == _singular_word(short):
        return True
    if long.startswith(short) and not is_id:
        return True
    if short[0] == long[0] and 2 <= len(short) <= _ABBREVIATED * len(long):
        letters = iter(long)
        if all(letter in letters for letter in short):
            return True
    distance = DamerauLevenshtein.distance(one, other)
    if distance == 1:
        return not is_id
    # Alike and no slip: another word. Unlike, and yet of the same meaning: a listed one.
    return 1 - distance / len(long) <= _OTHER_WORD and name_similarity(one, other) >= _SHOWN_BY_NAME
