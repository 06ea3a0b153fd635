"""HTML: what is given as text is text, whatever it holds."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard import html


class _Reader(HTMLParser):
    """Elements with their attributes, and all text, as a browser would read them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc",))))
def test_text_is_never_markup(text: str) -> None:
    """In an element, in an attribute, and in the data of an element of our own script."""
    read = _Reader(html.tag("p", text, title=text) + html.data_element("x-y", {"a": text}))
    assert [name for name, _ in read.elements] == ["p", "x-y"]
    assert read.elements[0][1] == {"title": text}
    assert read.text == html.visible(text)


def test_an_element_is_written_with_its_attributes_and_content() -> None:
    """None and False leave an attribute out; None is no content; lists are their parts."""
    written = html.tag("a", "x & y", [html.tag("b", "z"), None], class_="c", data_key=3,
                       hidden=True, title=None, href=False)  # fmt: skip
    assert written == '<a class="c" data-key="3" hidden>x &amp; y<b>z</b></a>'
    assert html.tag("input", name="a") == '<input name="a">'


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
    [(name, _)] = _Reader(html.link("x", href)).elements
    assert (name == "a") is local


def test_an_empty_state_waits_until_it_is_known_to_be_one() -> None:
    """While what came in lately is still being counted, nobody says that there is nothing."""
    assert "Still counting" in html.empty("No call.", "Make one.", is_complete=False)
    assert "No call." in html.empty("No call.", "Make one.", is_complete=True)
