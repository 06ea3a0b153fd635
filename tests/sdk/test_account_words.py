"""The account of a repair in words: short, true and harmless, whatever it holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.account_words import MAX_ACCOUNT_CHARS, account_in_words, why_not_followed
from aftercall.models import Account


def account(*values: dict[str, Any], kept: int = 7, dropped: tuple[Any, ...] = ()) -> Account:
    """An account in the wire's form."""
    return Account.model_validate({"kept": kept, "values": values, "dropped": dropped})


def value(path: str, origin: str, why: str = "w", **more: Any) -> dict[str, Any]:
    return {"path": path, "origin": origin, "why": why, **more}


RENAMED = [
    value(f"/edits/{n}/oldText", "moved", "another spelling", **{"from": f"/edits/{n}/old_text"})
    for n in range(3)
]


@pytest.mark.parametrize(
    ("given_account", "words"),
    [
        (account(RENAMED[0]), "`old_text` -> `oldText` (another spelling); 7 values kept"),
        (account(*RENAMED, kept=1),
         "`old_text` -> `oldText` (another spelling), 3 times; 1 value kept"),
        (account(value("/to/name", "moved", "the only place", **{"from": "/name"}), kept=0),
         "`name` -> `to.name` (the only place); no values kept"),
        (account(value("/n", "recoded", "text to number", **{"from": "/n"})),
         "`n` is rewritten (text to number); 7 values kept"),
        (account(value("/edits/0/n", "stated", "the error says 10")),
         "`edits[0].n` is stated (the error says 10); 7 values kept"),
        (account(value("/id", "own", ""), value("/size", "setting", "")),
         "`id` is from this session; `size` is a usual setting; 7 values kept"),
        (account(value("/x", "unexplained", "")), "`x` is not explained; 7 values kept"),
        (account(dropped=({"path": "/a", "why": "unknown to the schema"},)),
         "`a` is left out (unknown to the schema); 7 values kept"),
        (account(value("/channelName", "moved", "w", rivals=["/user"], **{"from": "/name"})),
         "`channelName` or `user`?; 7 values kept"),
        (account(value("/a/b", "moved", "w", rivals=["/c"])), "`a.b` or `c`?; 7 values kept"),
        (account(value("/a", "moved", "w", rivals=["/b", "/c", "/d", "/e"])),
         "`a` or `b` or `c` or another?; 7 values kept"),
        (account(value("no pointer", "own", "")),
         "`no pointer` is from this session; 7 values kept"),
    ],
)  # fmt: skip
def test_an_account_is_one_short_sentence(given_account: Account, words: str) -> None:
    """Names stand in marks; what was done alike several times is said once."""
    assert account_in_words(given_account) == words


_TEXTS = st.text(max_size=300)
_VALUES = st.fixed_dictionaries(
    {
        "path": _TEXTS,
        "origin": st.sampled_from(["moved", "recoded", "stated", "own", "setting", "unexplained"]),
        "from": st.none() | _TEXTS,
        "why": _TEXTS,
        "rivals": st.lists(_TEXTS, max_size=4),
    }
)
_DROPPED = st.fixed_dictionaries({"path": _TEXTS, "why": _TEXTS})


@given(st.integers(0, 10**9), st.lists(_VALUES, max_size=9), st.lists(_DROPPED, max_size=9))
def test_no_account_is_long_or_breaks_its_line(
    kept: int, values: list[dict[str, Any]], dropped: list[dict[str, Any]]
) -> None:
    """Whatever tools say: one printable line of bounded length, in which marks are ours."""
    whole = account(*values, kept=kept, dropped=tuple(dropped))
    words = account_in_words(whole)
    assert words.isprintable()
    assert len(words) <= MAX_ACCOUNT_CHARS
    assert words.count("`") % 2 == 0
    assert words.endswith("kept")
    assert bool(why_not_followed(whole)) is any(
        each["rivals"] or each["origin"] == "unexplained" for each in values
    )


def test_what_has_no_room_is_counted() -> None:
    """Nothing is passed over in silence."""
    many = account(*(value(f"/parameter_{n}", "stated", "said so") for n in range(100)))
    shown, _, rest = account_in_words(many).rpartition("; ")
    assert rest == "7 values kept"
    assert shown.split("; ")[-1] == f"{100 - shown.count('said so')} others"
