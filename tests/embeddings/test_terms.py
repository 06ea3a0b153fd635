"""Text to sparse terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeddings.text import MAX_TERM_LENGTH, MAX_TERMS, name_words, terms_text


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("topK", "topk top k"),
        ("top_k", "topk top k"),
        ("max-results", "maxresults max results"),
        ("HTTPServer2Error", "httpserver2error http server2 error"),
        ("rag.query", "rag.query rag query"),
        ("/etc/hosts", "etc/hosts etc hosts"),
        ("src/topK.py", "src/topk.py src topk top k py"),
        ("Invalid parameter: topK must be <= 10", "invalid parameter topk top k must be 10"),
        ("__init__", "init"),
        ("München", "münchen"),
        ("日本語 テスト", "日本語 テスト"),
        ("550e8400-e29b", "550e8400e29b 550e8400 e29b"),
        ("?! -- //", ""),
        ("", ""),
        *((name, "maxresults max results") for name in ("max_results", "maxResults", "MaxResults")),
        ("retry, retry", "retry retry"),
    ],
)
def test_identifiers_are_split_and_kept_whole(text, terms):
    """Words of an identifier in any convention, and itself; as often as it occurs."""
    assert terms_text(text) == terms


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getHealthWorkforce", "get health workforce"),
        ("web_search.topK", "web search top k"),
        ("PDF&URLTool", "pdf url tool"),
        ("HTTPServer2", "http server2"),
        ("München", "münchen"),
        ("??", ""),
    ],
)
def test_a_name_in_words_is_prose(name, words):
    """For a model that reads sentences: lower-case words, none of them twice."""
    assert name_words(name) == words


@given(st.text(max_size=400) | st.text(alphabet="aA1_./-: ", max_size=4_000))
def test_terms_are_bounded_lower_case_words(text):
    """Whatever the text: bounded, lower case, one space between, and the same each time."""
    terms = terms_text(text)
    words = terms.split(" ") if terms else []
    assert len(words) <= MAX_TERMS
    assert all(len(word) <= MAX_TERM_LENGTH for word in words)
    assert all(words)
    assert terms == terms_text(text)
    assert all(any(character.isalnum() for character in word) for word in words)
    assert terms == terms.lower()
