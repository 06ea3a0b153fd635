"""Axes are compared by what they say, not by how they are written."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aftercall.models import MAX_AXES, MAX_AXIS_CHARS
from retrieval.knowledge.patterns.clusters import normalise_axis, normalised_axes

_PIECES = st.sampled_from(
    ["the", "The", "ands", "an", "of", "e", "mail", "mails", "git", "Hub", "hubs", "o", "Auth",
     "s", "URLs", "PDFs", "status", "class", "classes", "ies", "xes", "ses", "people", "\u0301",
     "\u200d", "\uab70", "\u13a0", "ß", "İ", "🅰", "👩", "\ufe0f", "ﬁ", "ﷺ", "ς", "Σ", "é", "ǆ",
     "9", "9A", " ", "_", "-"]
)  # fmt: skip
_TEXTS = st.one_of(st.text(max_size=300), st.lists(_PIECES, max_size=60).map("".join))


@pytest.mark.parametrize(
    "spelled",
    ["HTML parsing", "HTMLParsing", "html_parsing", "html-parsing", "htmlParsing",
     "  HTML  Parsing.", "\uff28\uff34\uff2d\uff2c parsing", "HTML/parsing",
     "the HTML parsing", "HTML parsings", "html.parsing"],
)  # fmt: skip
def test_one_axis_in_many_spellings_is_one(spelled: str) -> None:
    assert normalise_axis(spelled) == "html parsing"


@pytest.mark.parametrize(
    ("spelled", "compared"),
    [
        ("URLs", "url"), ("ACLsAndPDFs", "acl pdf"), ("queries", "query"), ("movies", "movie"),
        ("ties", "tie"), ("addresses", "address"), ("databases", "database"), ("indexes", "index"),
        ("photos", "photo"), ("OAuth2Tokens", "o auth2 token"), ("v2Search", "v2 search"),
        ("3D rendering", "3d rendering"), ("A/B tests", "a b test"),
        ("GitHub issues", "git hub issue"), ("speech-to-text", "speech to text"),
    ],
)  # fmt: skip
def test_style_and_plural_make_no_difference(spelled: str, compared: str) -> None:
    assert normalise_axis(spelled) == compared


@pytest.mark.parametrize(
    "word",
    ["analysis", "status", "pass", "address", "access", "news", "canvas", "series", "bus", "gas",
     "css", "dns", "https", "analytics", "virus", "diagnosis", "as"],
)  # fmt: skip
def test_a_final_s_that_is_no_plural_stays(word: str) -> None:
    assert normalise_axis(word) == word


@pytest.mark.parametrize(
    ("spelled", "compared"),
    [
        ("Übersetzung", "übersetzung"), ("STRASSENSUCHE", "strassensuche"),
        ("straßenSuche", "strassen suche"), ("извлечение_данных", "извлечение данных"),
        ("データ抽出", "データ抽出"), ("हिन्दी अनुवाद", "हिन्दी अनुवाद"),
        ("🚚 transport", "🚚 transport"), ("❤️", "❤"),
    ],
)  # fmt: skip
def test_other_languages_and_emoji_survive(spelled: str, compared: str) -> None:
    assert normalise_axis(spelled) == compared


@pytest.mark.parametrize("nothing", ["", "   ", "---", "_", "?!", "\u200b", "</>"])
def test_of_what_says_nothing_nothing_is_left(nothing: str) -> None:
    assert normalise_axis(nothing) == ""


@given(_TEXTS)
@example("\uab70\uab70a")
@example("e\u200d\u0301")
@example("the " * 100)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    """The law that lets a normalised axis be looked up wherever one is."""
    once = normalise_axis(text)
    assert normalise_axis(once) == once


@given(_TEXTS)
def test_an_axis_is_bounded_words_with_one_space_between(text: str) -> None:
    axis = normalise_axis(text)
    assert len(axis) <= MAX_AXIS_CHARS
    assert axis == " ".join(axis.split())


def test_a_referral_keeps_its_first_axes_each_once_in_its_own_words() -> None:
    assert normalised_axes(["Fetching", "fetching", "--", "Extractions"]) == {
        "fetching": "Fetching",
        "extraction": "Extractions",
    }
    many = normalised_axes(f"axis n{number}" for number in range(1_000_000))
    assert list(many) == [f"axis n{number}" for number in range(MAX_AXES)]
