"""HTML: what is given as text is text, whatever it holds."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Account
from service.dashboard import html

UI: Any = html.open_templates().get_template("ui.html").module


class _Reader(HTMLParser):
    """Elements with their attributes, and all text, as a browser would read them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(page))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc",))))
def test_text_is_never_markup(text: str) -> None:
    """In an element, in an attribute, and in the data of an element of our own script."""
    table = html.plain_table("x", [html.Column("a", "A")], [{"a": text}])
    read = _Reader(UI.facts([(text, html.Anchor(text, "/"))]) + table)
    assert [name for name, _ in read.elements] == ["dl", "dt", "dd", "a", "data-table"]
    assert read.text.replace("\n", "") == 2 * html.w.escape_hidden(text)


@pytest.mark.parametrize(
    ("href", "local"),
    [
        ("/dashboard/", True),
        ("#main", True),
        ("//evil.example", False),
        ("/\\evil.example", False),
        ("/\t/evil.example", False),
        ("javascript:alert(1)", False),
        ("https://evil.example", False),
        ("", False),
    ],
)
def test_only_paths_of_the_service_are_links(href: str, local: bool) -> None:
    """Any other address is left out, and its text stays."""
    column = html.Column("a", "A", of=lambda _: html.Anchor("x", href))
    [(_, attributes)] = _Reader(html.plain_table("x", [column], [{}])).elements
    assert json.loads(attributes["data"] or "")["rows"] == [[["x", href] if local else "x"]]


def test_an_empty_state_waits_until_it_is_known_to_be_one() -> None:
    """While what came in lately is still being counted, nobody says that there is nothing."""
    assert "Still counting" in UI.empty("No call.", "Make one.", is_complete=False)
    assert "No call." in UI.empty("No call.", "Make one.", is_complete=True)


def account(**fields: Any) -> Account:
    """An account in the wire's form."""
    return Account.model_validate({"kept": 7, **fields})


def test_an_account_says_where_each_value_comes_from() -> None:
    """With its reason; what is left out, and what is a question, is said as well."""
    read = _Reader(
        UI.account(
            account(
                values=[
                    {"path": "/oldText", "origin": "moved", "from": "/old_text", "why": "a slip"},
                    {"path": "/n", "origin": "recoded", "from": "/n", "why": "text to number"},
                    {"path": "/limit", "origin": "unexplained", "why": ""},
                    {"path": "/channelName", "origin": "moved", "from": "/name", "why": "open",
                     "rivals": ["/user"]},
                ],
                dropped=[{"path": "/verbose", "why": "unknown to the schema"}],
            ),
            3,
        )
    )  # fmt: skip
    assert [line for line in read.text.split("\n") if line] == [
        "What it does with each value",
        "/oldText: moved, from /old_text (a slip)",
        "/n: the same in another form (text to number)",
        "/limit: not explained by anything",
        "! question /channelName or /user? From /name (open)",
        "/verbose: left out (unknown to the schema)",
        "7 values kept as sent",
    ]


@given(st.text(max_size=400), st.integers(0, 60))
def test_an_account_is_bounded_and_no_markup(text: str, many: int) -> None:
    """Whatever paths and reasons hold, and however many there are."""
    value = {"path": text, "origin": "moved", "from": text + "x", "why": text, "rivals": [text]}
    dropped = {"path": text, "why": text}
    read = _Reader(UI.account(account(values=[value] * many, dropped=[dropped] * many), 4))
    assert {name for name, _ in read.elements} <= {"h4", "ul", "li", "code", "span"}
    assert sum(name == "li" for name, _ in read.elements) <= 42
    assert len(read.text) < 60_000
