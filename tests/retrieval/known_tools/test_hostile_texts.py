"""Whatever tools, users and agents say, it stays data in both forms, and within the budget."""

import re
import unicodedata
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from retrieval.answers.known_tools.common import estimate_tokens, visible_line
from retrieval.answers.known_tools.pages import markdown_page, prompt_block
from retrieval.knowledge.tool.record import ToolRecord
from tests.retrieval.known_tools.hostile import records, texts
from tests.retrieval.known_tools.made_records import CLEAN, told

_LEFT_OUT = re.compile(r"(\d+) more tools? left out\.")
_OURS = re.compile(
    r"about \"|\d+ calls?, |methods|not its job |of little use: |cohesion: \"|pitfall, |"
    r"if this fails, try: |(?:[A-Za-z_$][\w$.-]*|\"[^\"]*\") worked at "
)
many = st.lists(records(), min_size=1, max_size=3)
budgets = st.sampled_from((50, 60, 90, 200, 500, 2_000, 100_000))


@settings(max_examples=120, deadline=None)
@given(many, budgets)
def test_the_block_has_our_tags_only(known: list[ToolRecord], budget: int) -> None:
    """It parses as XML; no text closes an element, begins one, or begins a line."""
    text = prompt_block([told(each) for each in known], budget)
    root = ET.fromstring(text)  # noqa: S314  # our own output is what is tested
    assert root.tag == "known_tools"
    assert {child.tag for child in root} <= {"tool"}
    for child in root:
        assert list(child) == []
        assert set(child.attrib) <= {"name", "server"}
        signature, *lines = (child.text or "").split("\n")
        assert signature.startswith("(")
        assert signature.endswith(")")
        assert all(_OURS.match(line) for line in lines)
    left_out = _LEFT_OUT.search("".join(child.tail or "" for child in root) + (root.text or ""))
    assert len(root) + (int(left_out[1]) if left_out else 0) == len(known)
    assert estimate_tokens(text) <= budget


@settings(max_examples=120, deadline=None)
@given(many, budgets)
def test_the_page_renders_nothing_of_others(known: list[ToolRecord], budget: int) -> None:
    """No HTML, no link but ours, no heading but ours, no code, no image, no emphasis."""
    url = "https://aftercall.example.org"
    text = markdown_page([told(each) for each in known], budget, dashboard_url=url)
    assert "<" not in text
    parsed = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inline = [part for token in parsed for part in token.children or ()]
    kinds = {token.type for token in [*parsed, *inline]}
    assert kinds <= {
        "heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "text",
        "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
        "text_special", "link_open", "link_close",
    }  # fmt: skip
    links = [part.attrs["href"] for part in inline if part.type == "link_open"]
    assert all(str(link).startswith(f"{url}/dashboard/tools/") for link in links)
    levels = [token.tag for token in parsed if token.type == "heading_open"]
    told_of = levels.count("h2")
    left_out = _LEFT_OUT.search(text)
    assert levels[0] == "h1"
    assert levels.count("h1") == 1
    assert told_of + (int(left_out[1]) if left_out else 0) == len(known)
    shown = "".join(part.content for part in inline if part.type == "text")
    assert "://" not in shown
    assert "@" not in shown
    assert not re.search(r"(?i)\bwww\.", shown)
    assert estimate_tokens(text) <= budget


@given(texts)
def test_plain_text_is_one_visible_line(text: str) -> None:
    """No control, zero-width or bidirectional character is left, and no more than was allowed."""
    shown = visible_line(text, 100, CLEAN)
    assert len(shown) <= 100
    assert shown.split("\n") == [shown]
    assert all(unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in shown)


def test_a_secret_is_masked_also_in_parts() -> None:
    """Characters that cannot be seen go before secrets are looked for."""
    secret = "sk-live-abcdefghijklmnop1234"  # noqa: S105  # nobody's
    for said in (f"the token is {secret}", "token=" + "\u200b".join(secret)):
        shown = visible_line(said, 200, CLEAN)
        assert secret not in shown
        assert "redacted" in shown
