"""Answers: the right correction, the honest abstention, and what is never proposed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ExecutionError, Suggestion, ToolAnnotations
from ingest.seed import load_seed
from retrieval.answers.answer import Question, answer
from retrieval.knowledge.confidence import Scaling
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.rewrites.edits import Cast, Rename, Replace, edits_of_key
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.rules import SignatureKnowledge
from tests.retrieval.cases import READS, answer_to, make_case, object_schema

TIME = object_schema(timezone="string")


def best(case: object, **kwargs: object) -> Suggestion:
    return answer_to(case, **kwargs).response.suggestions[0]  # type: ignore[arg-type]  # passes on


def missing(name: str) -> str:
    shown = "[type=missing, input_value={}, input_type=dict]"
    return f"1 validation error for x\n{name}\n  Field required {shown}"


def test_a_wrong_name_is_renamed_with_high_confidence() -> None:
    """Tz -> timezone: the value was said, the name is like, the schema fits."""
    found = best(make_case({"tz": "Europe/Berlin"}, missing("timezone"), schema=TIME))
    assert found.corrected_parameters == {"timezone": "Europe/Berlin"}
    assert found.confidence > 0.8
    assert [(change.op, change.path) for change in found.changes] == [
        ("remove", "/tz"), ("add", "/timezone"),
    ]  # fmt: skip


def test_an_unstated_value_is_never_put_into_a_writing_call_without_asking() -> None:
    """However common a value is, a gateway does not put it into a call that writes by itself."""
    profile = ToolProfile()
    for session in range(20):
        profile.observe_success({"repo_path": "/r", "message": "wip"}, str(session))
    schema = object_schema(repo_path="string", message="string")
    case = make_case(
        {"repo_path": "/r"}, missing("message"), schema=schema, profile=profile, writes=True
    )
    response = answer_to(case, annotations=ToolAnnotations()).response
    assert response.suggestions
    assert not any(each.safe for each in response.suggestions)


def test_a_reading_call_gets_the_usual_value_with_less_confidence() -> None:
    """Common knowledge of the tool may fill a read, below the confidence of an automatic retry."""
    profile = ToolProfile()
    for session in range(10):
        profile.observe_success({"repo_path": "/r", "branch_type": "local"}, str(session))
    schema = object_schema(repo_path="string", branch_type="string")
    case = make_case({"repo_path": "/r"}, missing("branch_type"), schema=schema, profile=profile)
    found = best(case)
    assert found.corrected_parameters == {"repo_path": "/r", "branch_type": "local"}
    assert found.evidence.successes == 10


def test_a_learned_repair_is_proposed_and_grows_surer() -> None:
    """The same mistake again: its own repair comes back, surer with each further session."""
    message = "Ref 'master' did not resolve to an object"
    last = 0.0
    for sessions in (["s1"], ["s1", "s2"], ["s1", "s2", "s3"]):
        known = SignatureKnowledge(
            signature="Ref <v> did not resolve to an object", category="not_found"
        )
        rule = known.rule_to_update([Replace(name="revision", before="master", value="main")])
        for session in sessions:
            rule.add_repair("ada", session)
        profile = ToolProfile()
        for session in ("p", "q"):
            profile.observe_success({"revision": "main"}, session)
        case = make_case({"revision": "master"}, message, signature=known, profile=profile)
        found = best(case)
        assert found.corrected_parameters == {"revision": "main"}
        assert found.evidence.repairs == len(sessions)
        assert found.confidence > last
        last = found.confidence
    assert last > 0.8


def test_what_is_known_to_fail_is_not_proposed_again() -> None:
    """The correction failed before with the same parameters: it is not offered."""
    profile = ToolProfile()
    profile.observe_failure({"timezone": "Berlin"}, blame_parameters=True)
    case = make_case({"tz": "Berlin"}, missing("timezone"), schema=TIME, profile=profile)
    assert answer_to(case).response.abstained


def test_reading_only_and_rejected_calls_may_be_repeated() -> None:
    """Everything else may have had an effect."""
    said = "Invalid branch type: x"
    assert answer_to(make_case({"b": "x"}, said), annotations=READS).response.retry.safe
    assert not answer_to(
        make_case({"b": "x"}, said), annotations=ToolAnnotations()
    ).response.retry.safe
    rejected = make_case({"b": "x"}, missing("c").replace("={}", "={'b': 'x'}"))
    assert answer_to(rejected, annotations=ToolAnnotations()).response.retry.safe


texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(texts, json_values, max_size=4),
    st.sampled_from(
        [missing("a"), "a must be <= 10", "a must be one of: b, c", "unknown parameter 'a'"]
    ),
    st.dictionaries(texts, json_values, max_size=3),
)
def test_any_call_and_any_schema_get_an_answer(parameters, message, schema) -> None:  # type: ignore[no-untyped-def]  # Hypothesis gives them
    """Never an exception: suggestions that change something, or an abstention with a reason."""
    response = answer_to(make_case(parameters, message, schema=schema)).response
    assert response.abstained == (not response.suggestions)
    assert response.suggestions or response.reason
    for suggestion in response.suggestions:
        assert 0.15 <= suggestion.confidence <= 1
        assert suggestion.corrected_parameters != parameters or suggestion.changes


def test_the_corpus_never_makes_an_answer_worse() -> None:
    """A corpus entry that agrees with the error adds to it, and the error stays named."""
    message = "Invalid parameter: topK must be <= 10"
    call = {"query": "q", "topK": 50}
    seeds = load_seed().find_entries(read_error(ExecutionError(message=message), call), "rag_query")
    assert seeds
    alone, helped = best(make_case(call, message)), best(make_case(call, message, seeds=seeds))
    assert helped.confidence >= alone.confidence
    assert {"error", "seed"} <= set(helped.evidence.sources)


def test_what_is_kept_beside_a_suggestion_lets_its_outcome_teach() -> None:
    """Its edits, and its confidence as shipped, whatever the workspace makes of that."""
    schema = object_schema(repo_path="string") | {"additionalProperties": False}
    case = make_case({"repo": "a"}, missing("repo_path"), schema=schema)
    doubtful = Scaling(shift=-1, outcomes=99)
    question = Question(case, ExecutionError(message="bad"), READS)
    plain, scaled = (
        answer(each, limit=3) for each in (question, replace(question, scaling=doubtful))
    )
    for found in (plain, scaled):
        assert [each.suggestion_id for each in found.response.suggestions] == list(found.ranked)
    [one, *_], [other, *_] = plain.ranked.values(), scaled.ranked.values()
    assert edits_of_key(one.edit_key) == [Rename(name="repo", to="repo_path")]
    assert one.estimate == other.estimate == pytest.approx(one.suggestion.confidence, abs=1e-4)
    assert other.suggestion.confidence < one.suggestion.confidence


def test_advice_has_no_estimate_to_be_fitted_on() -> None:
    """Its confidence is no calibrated one."""
    [offer] = answer_to(make_case({"q": 1}, "503 Service Unavailable")).ranked.values()
    assert offer.suggestion.action == "retry_unchanged"
    assert offer.estimate is None


def test_names_are_marked_and_whole_numbers_whole() -> None:
    """`to` is no word of the sentence, and a limit has all its digits."""
    schema = object_schema(source="string", destination="string")
    found = best(
        make_case({"source": "a", "to": "b"}, "'destination' is a required property", schema=schema)
    )
    assert found.lesson == "The parameter is called `destination`, not `to`."
    assert "no `to`; its required `destination`" in found.changes[0].reason
    found = best(make_case({"n": 2**60}, "n must be <= 9007199254740991"))
    assert found.lesson == "`n` must be at most 9007199254740991."
    assert found.changes[0].reason.startswith("the error states the limit 9007199254740991")


LIMIT = next(seed for seed in load_seed().entries if seed.pattern == "top_k_limit")


def test_a_lesson_of_another_parameter_is_not_told() -> None:
    """What is known of topK says nothing to an empty query, and all to a topK."""
    schema = object_schema(query={"type": "string", "minLength": 1}, topK="integer")
    call = {"query": "", "topK": 5}
    found = answer_to(make_case(call, "query must not be empty", schema=schema, seeds=(LIMIT,)))
    assert found.response.abstained
    assert "topK" not in (found.response.reason or "")
    found = answer_to(make_case(call, "topK is invalid", schema=schema, seeds=(LIMIT,)))
    assert LIMIT.lesson.rstrip(".") in (found.response.reason or "")


def test_a_sentence_is_said_once() -> None:
    """Two texts for numbers are two casts, and the corpus's word on them one."""
    lesson = "Numbers are no texts."
    seeds = [
        LIMIT.model_copy(update={"lesson": lesson, "edits": [Cast(name=name, to="integer")]})
        for name in ("a", "b")
    ]
    message = "".join(
        f"\n{name}\n  Input should be a valid integer [type=int_type]" for name in ("a", "b")
    )
    case = make_case({"a": "1", "b": "2"}, f"2 validation errors for x{message}", seeds=(*seeds,))
    told = best(case).lesson
    assert told == f"{lesson} `a` must be of type integer. `b` must be of type integer."


def test_advice_is_no_surer_than_the_reading_that_it_rests_on() -> None:
    """A classifier's guess at a permission is handed over as a guess."""
    case = make_case({"id": "1"}, "The ledger is not for you")
    guess = replace(case.reading, category="permission_denied", confidence=0.37)
    found = best(replace(case, reading=guess))
    assert (found.action, found.confidence) == ("escalate", 0.37)
