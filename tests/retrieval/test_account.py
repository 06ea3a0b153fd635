"""The account: every value of a repaired call is explained, or said to be unexplained."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aftercall.json_patch import same_json
from retrieval.answers.judge.ranking import judge
from retrieval.knowledge.calls.account import CallAccount, Grounds, StatedValue
from retrieval.knowledge.calls.matching import account_of
from retrieval.knowledge.calls.recodings import Place, recoding_between
from retrieval.knowledge.calls.tree import leaves_of
from retrieval.knowledge.confidence import Scaling
from retrieval.knowledge.values.parameters import ParameterView, Path
from retrieval.knowledge.values.scalars import is_placeholder
from tests.retrieval.cases import make_case, object_schema

NOWHERE = Place("x")
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9)
    | st.text(max_size=12)
)  # fmt: skip
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner,
                                                                max_size=4),
    max_leaves=12,
)  # fmt: skip
CALLS = st.dictionaries(st.text(max_size=6), TREES, max_size=5)


def grounds(**views: ParameterView) -> Grounds:
    """Grounds of a tool with these parameters, and no other."""
    return Grounds(places=lambda path: {} if path else views)


def explained(before: dict, after: dict, **views: ParameterView) -> CallAccount:
    """The account of a repair of a call of such a tool."""
    return account_of(before, after, grounds(**views))


def text(name: str, **more: object) -> ParameterView:
    """A parameter that takes texts."""
    return ParameterView(name, ("string",), **more)  # type: ignore[arg-type]


def is_under(path: Path, places: set[Path]) -> bool:
    """Whether a path is one of these, or lies inside of one."""
    return any(path[:end] in places for end in range(len(path) + 1))


@given(CALLS, CALLS)
def test_an_account_replayed_on_the_call_gives_the_repaired_call(before: dict, after: dict) -> None:
    """What stays, what is gone and what is put in are together the repaired call, leaf by leaf."""
    account = account_of(before, after, Grounds())
    gone = {each.path for each in account.dropped}
    gone |= {each.source for each in account.values if each.source is not None}
    new = {leaf.path: leaf.value for each in account.values
           for leaf in leaves_of(each.value, each.path)}  # fmt: skip
    rebuilt = {
        leaf.path: leaf.value
        for leaf in leaves_of(before)
        if not is_under(leaf.path, gone) and leaf.value not in ({}, [])
    }
    rebuilt |= new
    wanted = {leaf.path: leaf.value for leaf in leaves_of(after)}
    held = {path for path, value in wanted.items() if value not in ({}, []) or path in new}
    assert held <= rebuilt.keys()
    for path in held:
        assert same_json(rebuilt[path], wanted[path])
    for path in rebuilt.keys() - wanted.keys():
        assert rebuilt[path] in ({}, [])


@given(CALLS)
def test_a_call_that_stays_has_nothing_to_explain(call: dict) -> None:
    """No change is lossless, and all is kept."""
    account = account_of(call, json.loads(json.dumps(call)), Grounds())
    assert not account.values
    assert not account.dropped
    assert account.change_class == "lossless"


@given(SCALARS, SCALARS, SCALARS)
def test_what_nobody_states_is_unexplained_and_semantic(
    kept: object, old: object, new: object
) -> None:
    """A value out of nowhere is said to be so, however like the call the rest of it is."""
    account = account_of({"a": kept, "b": old}, {"a": kept, "b": [[new, "of nowhere 7731"]]},
                         Grounds())  # fmt: skip
    assert account.unexplained
    assert account.change_class == "semantic"


@given(st.integers(-(2**53), 2**53) | st.booleans() | st.text(min_size=1, max_size=8)
       | st.lists(st.integers(0, 9), min_size=1, max_size=3))  # fmt: skip
def test_a_recoding_without_a_loss_has_a_way_back(value: object) -> None:
    """Casts, JSON texts and lists of one give the leaf back."""
    assume(not (isinstance(value, str) and is_placeholder(value)))  # what it stands for is not said
    forms = [[value], json.dumps(value)] if isinstance(value, list) else [[value]]
    forms += [json.dumps(value)] if isinstance(value, int) else []
    for form in forms:
        forth = recoding_between(value, form, NOWHERE)
        if isinstance(value, list) and isinstance(form, list):
            continue  # a list of a list is another level
        assert forth is not None
        if not forth.loses:
            back = recoding_between(form, value, NOWHERE)
            assert back is not None
            assert not back.loses


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("5", 5), (5, "5"), ("true", True), (5.0, 5), ("a", ["a"]), (["a"], "a"), ('["a"]', ["a"]),
        ({"a": 1}, '{"a": 1}'), ("2025/03/31", "2025-03-31"), ("5", [5]), ('"Rome"', "Rome"),
        (42, "0042"),
    ],
)  # fmt: skip
def test_these_are_the_same_value_in_another_form(before: object, after: object) -> None:
    """Each loses nothing."""
    found = recoding_between(before, after, NOWHERE)  # type: ignore[arg-type]
    assert found is not None
    assert not found.loses


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    return 2\n", "return 2"), ("10 commits", 10), ("a, b", ["a", "b"]),
        ("Ann <ann@x.example>", "ann@x.example"), ("2025-03-31T10:00:00Z", "2025-03-31"),
    ],
)  # fmt: skip
def test_these_say_what_they_lose(before: object, after: object) -> None:
    """Blanks of code, words beside a number, one text for several: gone for good."""
    found = recoding_between(before, after, NOWHERE)  # type: ignore[arg-type]
    assert found is not None
    assert found.loses


@pytest.mark.parametrize(
    ("before", "after"), [("enable", "disable"), ("-5", "5"), ("Zoe Ott", "Ann Lee"), (1, 2)]
)
def test_these_are_other_values(before: object, after: object) -> None:
    """No function of the registry makes one of the other."""
    assert recoding_between(before, after, NOWHERE) is None  # type: ignore[arg-type]


def test_a_rename_by_spelling_is_lossless_and_says_so() -> None:
    """`old_text` is `oldText`, in a list of objects as well."""
    account = account_of(
        {"edits": [{"old_text": "    a\n", "n": 1}]}, {"edits": [{"oldText": "    a\n", "n": 1}]},
        Grounds(),
    )  # fmt: skip
    [value] = account.values
    assert (value.origin, value.why, account.kept) == ("moved", "another spelling", 1)
    assert account.change_class == "lossless"


def test_two_places_that_take_a_value_are_a_question() -> None:
    """`name` may be the channel's or the user's."""
    views = {"channelName": text("channelName"), "user": text("user")}
    account = explained({"name": "bob"}, {"channelName": "bob"}, **views)
    [value] = account.questions
    assert value.rivals == (("user",),)
    assert account.change_class == "semantic"


def test_the_only_place_left_is_plausible() -> None:
    """Nothing else would take it, and nothing shows that it is meant."""
    account = explained({"text": "hello"}, {"utterance": "hello"}, utterance=text("utterance"))
    assert account.change_class == "plausible"


def test_a_required_place_has_no_optional_rival() -> None:
    """A call without it is none."""
    views = {"utterance": text("utterance", required=True), "voice": text("voice")}
    account = explained({"text": "hello"}, {"utterance": "hello"}, **views)
    assert not account.questions


def test_a_key_with_a_meaning_of_its_own_is_lost() -> None:
    """`{"title": "about"}` for a text says more than `about`."""
    account = explained({"content": {"title": "about"}}, {"content": "about"},
                        content=text("content"))  # fmt: skip
    assert account.lost_keys == ("title",)
    assert account.change_class == "lossy"


def test_a_neutral_key_around_a_value_is_nothing_lost() -> None:
    """`{"value": 5}` for a number is 5."""
    account = explained({"size": {"value": 5}}, {"size": 5},
                        size=ParameterView("size", ("integer",)))  # fmt: skip
    assert account.change_class == "lossless"


def test_what_is_left_out_is_lossy_unless_it_said_nothing() -> None:
    """Null and empty texts say nothing; a mark that is said twice is still said."""
    left_out = {"a": 1, "b": None, "c": ""}
    assert explained(left_out, {"a": 1}).change_class == "lossless"
    assert explained({"a": 1, "b": 2}, {"a": 1}).change_class == "lossy"


def test_a_limit_under_another_name_is_another_call() -> None:
    """`except` is no `taskId`."""
    account = explained({"except": "t-1"}, {"taskId": "t-1"}, taskId=text("taskId"))
    assert account.change_class == "semantic"


def test_a_sign_belongs_to_its_number() -> None:
    """`-5` says five no more than `5` says minus five; in `item-5` the sign is a dash."""
    assert account_of({"offset": "-5"}, {"offset": 5}, Grounds()).change_class == "semantic"
    assert account_of({"offset": "-5"}, {"offset": -5}, Grounds()).change_class == "lossless"
    assert recoding_between("item-5", 5, Place("item")) is not None


def test_a_stated_bound_is_lossy_and_another_stated_value_semantic() -> None:
    """A clamp keeps the question; a value that somebody else states is another answer."""

    def stated(kind: str) -> Grounds:
        return Grounds(state=lambda *_: StatedValue("stated", "the error", kind))  # type: ignore[arg-type]

    assert account_of({"n": 50}, {"n": 10}, stated("bound")).change_class == "lossy"
    assert account_of({"n": 50}, {"n": 10}, stated("value")).change_class == "semantic"


def test_a_secret_that_moves_is_a_value_like_any_other() -> None:
    """A mask is compared as it is."""
    mask = "[redacted:string:17-32]"
    account = explained({"apiToken": mask, "x": 1}, {"api_token": mask, "x": 1},
                        api_token=text("api_token"))  # fmt: skip
    assert account.change_class == "lossless"
    assert account.kept == 1


def test_a_call_in_a_text_is_read_out_of_it() -> None:
    """Each of its values is named with the text that it comes from."""
    account = explained(
        {"arguments": '{"subject": "VPN", "n": 2}'}, {"subject": "VPN", "n": 2},
        subject=text("subject"), n=ParameterView("n", ("integer",)),
    )  # fmt: skip
    assert {each.origin for each in account.values} == {"recoded"}
    assert account.change_class == "lossless"


def test_a_subject_beyond_its_bound_is_never_moved_there() -> None:
    """180 degrees are a place that nobody meant; ten results of fifty are what was asked for."""
    number = {"type": "number", "minimum": -180, "maximum": 180}
    place = make_case({"longitude": 373.41}, "longitude must be <= 180",
                      schema=object_schema(longitude=number))  # fmt: skip
    assert all(each.proposal.parameters["longitude"] != 180 for each in judge(place, Scaling()))
    page = make_case({"topK": 50}, "topK must be <= 10", schema=object_schema(topK="integer"))
    assert judge(page, Scaling())[0].proposal.parameters == {"topK": 10}
    assert judge(page, Scaling())[0].account.change_class == "lossy"
