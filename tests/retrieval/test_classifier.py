"""The classifier: its data, its shipped head, and when it is asked."""

from collections import Counter
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from aftercall.json_values import JsonObject
from aftercall.models import ErrorCategory, ExecutionError, FailedCall, SuggestRequest
from embeddings.embedders import open_embedder
from embeddings.models import BUNDLED_NAME
from retrieval.knowledge.reading.classifier import CategoryHead, embedded_words, shipped_head
from retrieval.knowledge.reading.reader import read_error
from tests.ingest.conftest import WORKSPACE, Brain, brain

__all__ = ["brain"]

UNREAD = "The lamp stood still as the moon went over the barn"


def test_the_labelled_set_is_large_varied_and_split_by_family(fitting: Any) -> None:
    """No message stands twice, each family is on one side, and each category on both."""
    messages = fitting.labelled_messages()
    assert len(messages) >= 500
    assert len({each.message for each in messages}) == len(messages)
    assert {each.category for each in messages} <= set(get_args(ErrorCategory))
    sides = Counter((each.category, each.split) for each in messages)
    assert all(sides[category, "train"] >= 10 for category in {each.category for each in messages})
    assert all(sides[category, "test"] >= 10 for category in {each.category for each in messages})


def test_the_shipped_head_belongs_to_the_set(fitting: Any) -> None:
    """Who changes the set fits the head anew: `python -m bench.quality.classifier --write`."""
    head = shipped_head()
    assert head.training_digest == fitting.training_digest(fitting.labelled_messages())
    assert head.embedder == BUNDLED_NAME
    assert head.weights.dtype == np.float32


def test_a_head_is_of_one_embedder() -> None:
    """Vectors of another model mean nothing to it."""
    assert CategoryHead.load(BUNDLED_NAME) is not None
    assert CategoryHead.load("hashing") is None


def test_probabilities_are_probabilities_and_the_unsure_is_unknown() -> None:
    """They add up to one; a vector of nothing is classified as nothing."""
    head = shipped_head()
    found = head.category_probabilities(np.ones(head.weights.shape[1], dtype=np.float32))
    assert found.sum() == pytest.approx(1, abs=1e-5)
    flat = CategoryHead(
        "x", "", ("timeout", "conflict", "execution"), np.zeros((3, 2), np.float32),
        np.zeros(3, np.float32), {}, {}, temperature=1, threshold=0.5,
    )  # fmt: skip
    assert flat.classify_error(np.zeros(2, np.float32)).category == "unknown"


def test_families_added_since_the_freeze_are_never_tested_on(fitting: Any) -> None:
    """Else whoever adds messages could choose them for the test split."""
    later = [each for each in fitting.labelled_messages() if each.is_later]
    assert len({each.source for each in later}) >= 50
    assert {each.split for each in later} == {"train"}


CODES: list[tuple[str, str, str, dict[str, object], ErrorCategory]] = [
    ("Error", "403", "You have exceeded a secondary rate limit.", {}, "rate_limited"),
    ("Error", "", "API rate limit exceeded for 1.2.3.4", {"status": 403}, "rate_limited"),
    ("Error", "", "No.", {"status": 403}, "permission_denied"),
    ("Error", "", "No.", {"response": {"statusCode": "503"}}, "unavailable"),
    ("server_error", "", "Sorry about that!", {}, "unavailable"),
    ("overloaded_error", "", "Overloaded", {}, "unavailable"),
    ("Error", "", "not_authed", {}, "permission_denied"),
    ("Error", "", "Missing required scope: repo", {}, "permission_denied"),
    ("Error", "", "This space is restricted to members", {}, "permission_denied"),
    ("Error", "", "sandbox: deny file-write-create", {}, "permission_denied"),
    ("Error", "", "Approval required", {}, "permission_denied"),
    ("Error", "", "webhook signature mismatch", {}, "permission_denied"),
    ("Error", "40001", "Unauthorized", {}, "permission_denied"),
]


@pytest.mark.parametrize(("error_type", "code", "message", "details", "category"), CODES)
def test_codes_and_the_words_of_refusals_are_read(
    error_type: str, code: str, message: str, details: dict[str, object], category: ErrorCategory
) -> None:
    """Also where a code has several meanings, as 403 and 40001 do."""
    error = ExecutionError.model_validate(
        {"type": error_type, "code": code or None, "message": message, "details": details}
    )
    assert read_error(error, {}).category == category


@pytest.mark.parametrize(
    "value", ["permission denied report", "rate limit.txt", "timeout, retried"]
)
def test_a_value_of_the_call_decides_no_category(value: str) -> None:
    """Only what the tool itself says does."""
    error = ExecutionError(message=f"Not found: {value}")
    assert read_error(error, {"name": value}).category == "not_found"


def test_a_plain_word_of_the_call_is_the_tools_own_where_it_is_not_shown() -> None:
    """`timeout` is not masked in `the request timeout`, but in `'timeout'`."""
    call: JsonObject = {"mode": "timeout"}
    assert (
        read_error(ExecutionError(message="the request hit a timeout"), call).category == "timeout"
    )
    shown = ExecutionError(message="There is no mode called 'timeout'")
    assert read_error(shown, call).category == "not_found"


async def test_the_bundled_model_and_the_head_read_words_no_grammar_has() -> None:
    """A category for a sentence in nobody's list of phrases, with a probability."""
    embedder = await open_embedder()
    try:
        [vector] = await embedder.embed(
            [embedded_words("nobody picked up at the other end")], "query"
        )
    finally:
        await embedder.close()
    found = shipped_head().classify_error(vector)
    assert 0 < found.confidence <= 1


def a_call(message: str) -> FailedCall:
    fields = {"agent": "a", "toolName": "t", "sessionId": "s", "parameters": {}}
    return FailedCall.model_validate(fields | {"error": {"message": message}})


class CountingHead:
    """Says `timeout` to all, and counts."""

    def __init__(self) -> None:
        self.asked = 0

    def load(self, _embedder: str) -> "CountingHead":
        return self

    def classify_error(
        self, _vector: NDArray[np.float32], _text: str, _read_as: ErrorCategory
    ) -> object:
        from retrieval.knowledge.reading.category import CategoryReading

        self.asked += 1
        return CategoryReading("timeout", 0.71)


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        (UNREAD, 1),
        ("That is a malformed thing", 1),
        ("Something went wrong", 0),
        ("x must be <= 10", 0),
        ("Connection refused", 0),
    ],
)
async def test_only_what_no_grammar_reads_well_is_classified(
    brain: Brain, monkeypatch: pytest.MonkeyPatch, message: str, asked: int
) -> None:
    """The usual question costs no second embedding; the answer carries the probability."""
    head = CountingHead()
    monkeypatch.setattr("retrieval.answers.suggest.CategoryHead", head)
    call = a_call(message)
    response = await brain.suggester.suggest(WORKSPACE, SuggestRequest(execution=call))
    assert head.asked == asked
    if asked:
        assert (response.pattern.category, response.pattern.confidence) == ("timeout", 0.71)


async def test_without_a_head_the_category_stays_unknown(brain: Brain) -> None:
    """Another embedder's vectors are not classified."""
    call = a_call(UNREAD)
    response = await brain.suggester.suggest(WORKSPACE, SuggestRequest(execution=call))
    assert response.pattern.category == "unknown"
