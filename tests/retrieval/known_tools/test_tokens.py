"""The estimate of tokens: it adds up, and is no less than simple truths say."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.known_tools.common import COMMON_WORDS, estimate_tokens


def test_what_is_counted() -> None:
    """Common words are one token, others some; marks and digits one each."""
    assert estimate_tokens("") == 0
    assert estimate_tokens("search the file") == 3
    assert estimate_tokens('<tool name="') == 5
    assert estimate_tokens("2026") == 4
    assert estimate_tokens("retrieval") == 4
    assert estimate_tokens("maxResults") > estimate_tokens("max results")
    assert estimate_tokens("xqzvtrkl") == 7
    assert estimate_tokens("工") == 3
    assert all(word.isalpha() and word.islower() for word in COMMON_WORDS)


@given(st.text(), st.text())
def test_lines_add_up(one: str, other: str) -> None:
    """The estimate of a text is that of its lines and line breaks, so a budget can be dealt out."""
    assert estimate_tokens(f"{one}\n{other}") == estimate_tokens(one) + 1 + estimate_tokens(other)
