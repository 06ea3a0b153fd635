"""What the caller meant stays: near misses that must not become wrong successes."""

from typing import Any

import pytest

from aftercall.models import Suggestion, ToolAnnotations
from retrieval.answers.proposers.case import Case
from retrieval.knowledge.rewrites.edits import Add, Clamp, Remove, Replace
from retrieval.knowledge.rows.documents import SeedEntry
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.rules import SignatureKnowledge
from tests.retrieval.cases import answer_to, make_case, object_schema

AUTOMATIC = 0.8


def suggestions(case: Case) -> list[Suggestion]:
    return answer_to(case).response.suggestions


def missing(name: str) -> str:
    return f"'{name}' is a required property"


def profile_of(sessions: int = 20, **parameters: Any) -> ToolProfile:
    profile = ToolProfile()
    for session in range(sessions):
        profile.observe_success(parameters, str(session))
    return profile


def rule(signature: str, *edits: Any, sessions: int) -> SignatureKnowledge:
    known = SignatureKnowledge(signature=signature, category="unknown")
    names = [str(number) for number in range(sessions)]
    key = known.rule_to_update(list(edits))
    key.repairs, key.sessions = sessions, names
    return known


MASKED = "[redacted:string:9-16]"
CLOSED_TABLE = object_schema(["table"], table="string") | {"additionalProperties": False}
DROPS_A_QUERY = SeedEntry(
    pattern="p", category="invalid_parameters", messages=["x"],
    correction="c", lesson="l", edits=[Remove(name="query")],
)  # fmt: skip
LOSES = "refused: would lose changes"


@pytest.mark.parametrize(
    ("parameters", "message", "known"),
    [
        # An id that differs from a well-known one in a digit is not a misspelling of it.
        *(
            ({"name": wrong}, f"No entry found with name '{wrong}'",
             {"profile": profile_of(name=of)})
            for wrong, of in (("acct-00012", "acct-00013"), ("invoice 2024-01", "invoice 2024-02"),
                              ("v1.2.4", "v1.2.3"))
        ),
        # 5 minutes are not 5 seconds, and 10k are not 10.
        *(
            ({"timeout": value}, "timeout must be an integer", {})
            for value in ("5 minutes", "10k", "20%", "3 million", "2h")
        ),
        # Neither 0 nor 1 is what a caller with 1.5 or -0.5 had in mind.
        ({"ratio": 1.5}, "ratio must be less than 1", {}),
        ({"ratio": -0.5}, "ratio must be positive", {}),
        # The message is about `age`, which the call does not have.
        ({"price": 50}, "age must be <= 10", {}),
        # `force` helped one agent once; nobody else gets it unasked.
        ({"branch": "x"}, LOSES,
         {"signature": rule(LOSES, Add(name="force", value=True), sessions=1), "writes": True}),
        # Two callers' secrets look alike when masked; a rule for one says nothing of the other.
        ({"x": MASKED}, "bad x",
         {"signature": rule("bad x", Replace(name="x", before=MASKED, value="open"), sessions=3)}),
        # An entry that is merely like the error touches nothing that the error is not about.
        ({"query": "q", "n": "many"}, "n must be an integer", {"seeds": (DROPS_A_QUERY,)}),
        # What was not found is a table inside the query, not the query.
        ({"query": "select * from user"}, "no such table: user",
         {"profile": profile_of(query="users")}),
    ],
)  # fmt: skip
def test_what_may_mean_something_else_is_not_changed(
    parameters: dict[str, Any], message: str, known: dict[str, Any]
) -> None:
    """Another number, a measure, an open bound, another's matter."""
    assert suggestions(make_case(parameters, message, **known)) == []


@pytest.mark.parametrize(
    ("parameters", "message", "known", "most"),
    [
        # Other sessions asked for Boston: Austin may be meant all the same.
        ({"name": "Jon Smit"}, "No user found with name 'Jon Smit'",
         {"profile": profile_of(name="John Smit")}, AUTOMATIC),
        # Without a schema nothing says that `repo` is wrong; it may just look like `repo_path`.
        ({"repo": "a"}, missing("repo_path"), {}, AUTOMATIC),
        # What the tool does not know may have narrowed the call.
        ({"table": "t", "where": "id=5"},
         "Additional properties are not allowed ('where' was unexpected)",
         {"schema": CLOSED_TABLE, "writes": True}, 0.6),
        # To transfer 100 instead of 500 is another transfer.
        ({"amount": 500, "to": "x"}, "amount must be <= 100", {"writes": True}, 0.5),
    ],
)  # fmt: skip
def test_what_is_a_guess_is_no_automatic_retry(
    parameters: dict[str, Any], message: str, known: dict[str, Any], most: float
) -> None:
    """However likely it looks."""
    found = suggestions(make_case(parameters, message, **known))
    assert all(each.confidence < most for each in found)


def test_a_listing_is_clamped_also_by_a_tool_that_writes() -> None:
    """To list 100 instead of 500 is no other wish."""
    [listing, *_] = suggestions(make_case({"limit": 500}, "limit must be <= 100", writes=True))
    assert listing.confidence > AUTOMATIC


@pytest.mark.parametrize(
    ("wrong", "other"),
    [("page_size", "page"), ("min_price", "max_price"), ("exclude", "include"),
     ("file", "file_type"),
     ("start", "end"), ("old_path", "new_path"), ("context", "content")],
)  # fmt: skip
def test_another_aspect_is_not_the_same_parameter(wrong: str, other: str) -> None:
    """A value never moves between two ends, two sides or a thing and its size."""
    schema = object_schema([], **{other: "string"}) | {"additionalProperties": False}
    message = f"Additional properties are not allowed ('{wrong}' was unexpected)"
    for each in suggestions(make_case({wrong: "x"}, message, schema=schema)):
        assert other not in (each.corrected_parameters or {})


def test_a_rule_does_not_outvote_the_error_at_hand() -> None:
    """Another plan had the limit 10; this error says 100."""
    known = rule("limit must be <= <n>", Clamp(name="limit", maximum=10), sessions=5)
    best = suggestions(make_case({"limit": 500}, "limit must be <= 100", signature=known))
    assert [each.corrected_parameters for each in best] == [{"limit": 100}]


def test_a_masked_number_is_not_of_the_wrong_type() -> None:
    """The mask is text; the caller's value may be the number that the schema wants."""
    schema = object_schema(pin="integer", zone="string")
    case = make_case({"pin": "[redacted:number:1-8]", "tz": "UTC"}, missing("zone"), schema=schema)
    assert [fault.path for fault in case.faults] == [("zone",), ("tz",)]


def test_a_catalogue_is_for_its_own_kind_of_parameter() -> None:
    """A city is not a time zone, however alike the two errors sound."""
    seed = SeedEntry(
        pattern="p", category="not_found", messages=["x"],  correction="c",
        lesson="l", catalogue="iana_time_zones",
    )  # fmt: skip
    city = make_case({"city": "Berlin"}, "No city found with name Berlin", seeds=(seed,))
    assert suggestions(city) == []
    zone = make_case({"tz": "Berlin"}, "No time zone found with key Berlin", seeds=(seed,))
    assert suggestions(zone)[0].corrected_parameters == {"tz": "Europe/Berlin"}


def test_evidence_counts_what_agrees() -> None:
    """Successes of the same shape but with other values do not speak for a value."""
    profile = ToolProfile()
    for session in range(50):
        profile.observe_success({"n": 40 + session}, str(session))
    [best, *_] = suggestions(make_case({"n": 500}, "n must be <= 20", profile=profile))
    assert best.evidence.successes == 0
    assert "stay" not in best.changes[0].reason


def test_an_old_schema_counts_less_and_forbids_nothing() -> None:
    """What failed under another schema may be right now; what was usual then is less sure."""
    profile = profile_of(zone="UTC", n=1)
    profile.observe_failure({"zone": "UTC", "n": 2}, blame_parameters=True)
    schema = object_schema(zone="string", n="integer")
    now = make_case({"n": 1}, missing("zone"), schema=schema, profile=profile)
    old = Case(**{name: getattr(now, name) for name in _GIVEN} | {"profile_is_current": False})
    assert suggestions(old)[0].confidence < suggestions(now)[0].confidence


_GIVEN = ("parameters", "reading", "view", "profile", "signature", "seeds", "writes",
          "schema")  # fmt: skip


def test_successes_alone_never_make_a_suggestion_sure() -> None:
    """To succeed is weak evidence of right: a wrong suggestion must not make itself certain."""
    known = rule("bad x", Replace(name="x", before="a", value="b"), sessions=0)
    next(iter(known.rules.values())).successes = 10_000
    profile = profile_of(x="b")
    case = make_case({"x": "a"}, "bad x", signature=known, profile=profile)
    assert all(each.confidence < 0.9 for each in suggestions(case))


def test_ran_and_then_failed_to_validate_is_no_rejection() -> None:
    """Validators' phrases about what came back, or about another input, prove nothing."""
    nothing = ToolAnnotations()
    for message in (
        "Output validation error: 'id' is a required property",
        "1 validation error for CreateUserResponse\nid\n  Field required "
        "[type=missing, input_value={'name': 'x'}, input_type=dict]",
        "1 validation error for User\nid\n  Field required "
        "[type=missing, input_value={'nick': 'y'}, input_type=dict]",
        "The row was inserted, then: 'id' is a required property",
        "Rate limit exceeded while writing page 7",
    ):
        case = make_case({"name": "x"}, message, writes=True)
        assert not answer_to(case, message, nothing).response.retry.safe, message
    assert make_case(
        {}, "Output validation error: 'id' is a required property"
    ).reading.category == ("contract_violation")


@pytest.mark.parametrize(
    ("message", "parameters"),
    [
        ("Input validation error: 'zone' is a required property", {"tz": "UTC"}),
        ("MCP error -32602: Invalid arguments for tool x: []", {"tz": "UTC"}),
        ("Error executing tool f: 1 validation error for fArguments\nzone\n  Field required "
         "[type=missing, input_value={'tz': 'UTC'}, input_type=dict]", {"tz": "UTC"}),
        ("1 validation error for call[f]\nn\n  Input should be a valid integer, unable to parse "
         "string as an integer [type=int_parsing, input_value='x', input_type=str]", {"n": "x"}),
        ("1 validation error for GitLog\nn\n  Input should be a valid integer, unable to parse "
         "string as an integer [type=int_parsing, input_value='five', input_type=str]",
         {"n": "five"}),
        ("f() got an unexpected keyword argument 'tz'", {"tz": "UTC"}),
    ],
)  # fmt: skip
def test_a_refusal_of_this_very_call_may_be_repeated(
    message: str, parameters: dict[str, Any]
) -> None:
    """The framework's own frame, or a validator's words that fit the call, prove it."""
    assert make_case(parameters, message, writes=True).reading.rejected_before_run
