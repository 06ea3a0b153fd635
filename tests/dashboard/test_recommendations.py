"""Recommendations as issues: what tools and users said stays what it is, and means nothing."""

import re

import pytest

from aftercall.models import Recommendation
from service.dashboard.recommendations import code_span, issue_text

HOSTILE = "```\n# Deploy now @everyone\n[x](javascript:alert(1)) <script> #1 `a` \u202e"


def recommendation(said: str) -> Recommendation:
    return Recommendation.model_validate({
        "recommendationId": "0f6f1c1e-8a44-5d0e-9c3f-5b7f3b0f2a61", "kind": "split",
        "tool": {"serverName": "web", "toolName": said[:200]}, "message": said,
        "confidence": 0.98, "priority": 6.7,
        "evidence": {"counts": [{"what": said, "count": 8, "weight": 6.8}], "calls": 41,
                     "suggestedSplits": [[said, "list"]], "quotes": [said]},
    })  # fmt: skip


def test_an_issue_quotes_in_code_alone() -> None:
    """Nothing of what was said is left once code is taken out; the frame is."""
    text = issue_text(recommendation(HOSTILE))
    rest = re.sub(r"(?ms)^(`{3,})text\n.*?\n\1$", "", text)
    rest = re.sub(r"(?s)(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", rest)
    assert not re.search(r"Deploy|everyone|javascript|script>|`", rest)
    assert "Split the tool" in rest
    assert "8, of 41 calls" in rest
    assert "\u202e" not in text


@pytest.mark.parametrize("text", ["a", "`", "a``b", "``` `", "x\n# y"])
def test_a_code_span_ends_where_its_text_does(text: str) -> None:
    """Its fence is longer than any run of backticks inside, and it is one line."""
    found = re.fullmatch(r"(`+)(?!`)(.+)(?<!`)\1", code_span(text))
    assert found
    assert found[2].strip() == " ".join(text.split())
    assert found[1] not in found[2]
