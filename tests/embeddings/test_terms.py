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
    ],
)
def test_identifiers_are_split_and_kept_whole(text, terms):
    """Words of an identifier and the identifier itself are terms; punctuation is not."""
    assert terms_text(text) == terms


@pytest.mark.parametrize("other", ["max_results", "maxResults", "MaxResults", "max-results"])
def test_spellings_of_a_name_share_all_their_terms(other):
    """A parameter in another convention, the agents' usual mistake, meets the right one."""
    assert terms_text(other) == terms_text("max_results")


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


def test_repetition_is_kept():
    """BM25 counts how often a term occurs."""
    assert terms_text("retry, retry").split() == ["retry", "retry"]


def test_encoded_data_gives_no_term():
    """Nobody searches for a base64 blob, and it would only fill the index."""
    assert terms_text("key " + "A1b2" * 40).split()[0] == "key"
    assert all(len(term) <= MAX_TERM_LENGTH for term in terms_text("x" * 500).split())


@given(st.text(max_size=400) | st.text(alphabet="aA1_./-: ", max_size=4_000))
def test_terms_are_bounded_lower_case_words(text):
    """Whatever the text: bounded, lower case, one space between, and the same each time."""
    terms = terms_text(text)
    words = terms.split(" ") if terms else []
    assert len(words) <= MAX_TERMS
    assert all(words)
    assert terms == terms_text(text)
    assert all(any(character.isalnum() for character in word) for word in words)
    assert terms == terms.lower()
