"""HTML: what is given as text is text, whatever it holds."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard import html

UI: Any = html._TEMPLATES.get_template("ui.html").module


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
    assert read.text.replace("\n", "") == 2 * html.w.visible(text)


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
