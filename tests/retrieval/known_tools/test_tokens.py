"""The estimate of tokens: it adds up, and is no less than simple truths say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.known_tools.common import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("search the file", 3), ('<tool name="', 5), ("2026", 4), ("retrieval", 4),
     ("xqzvtrkl", 7), ("工", 3)],
)  # fmt: skip
def test_what_is_counted(text: str, tokens: int) -> None:
    """Common words are one token, others some; marks and digits one each."""
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_lines_add_up(one: str, other: str) -> None:
    """The estimate of a text is that of its lines and line breaks, so a budget can be dealt out."""
    assert estimate_tokens(f"{one}\n{other}") == estimate_tokens(one) + 1 + estimate_tokens(other)
