"""The corrected call: the caller's own values, secrets and all, and none that no change names."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.json_patch import diff, same_json
from aftercall.json_values import JsonObject
from aftercall.models import Account, Change
from aftercall.redaction import DEFAULT_REDACTOR, is_redacted
from aftercall.reflection import corrected_call
from aftercall.reflection.corrected_call import CorrectionError, correct_call
from tests.sdk import trees

M = "[redacted:string:1-8]"
LONG = "[redacted:string:33-64]"


def changes_between(before: JsonObject, after: JsonObject) -> list[Change]:
    """The changes from one call to another, as the service sends them."""
    return [
        Change(op=each.op, path=each.path, from_=each.before, value=each.value, reason="r")
        for each in diff(before, after)
    ]


def made(op: str, path: str, value: Any = None, before: Any = None) -> Change:
    return Change.model_validate(
        {"op": op, "path": path, "value": value, "from": before, "reason": "r"}
    )


def refused(parameters: JsonObject, changes: list[Change], account: Account | None = None) -> str:
    """Why it is not sent."""
    kept = deepcopy(parameters)
    with pytest.raises(CorrectionError) as caught:
        correct_call(parameters, changes, account)
    assert same_json(parameters, kept)
    return str(caught.value)


SECRETS: dict[str, tuple[JsonObject, JsonObject, JsonObject, JsonObject]] = {
    "an object that moves whole": (
        {"cfg": {"user": "a", "pwd": "hunter2", "n": [1.0, "  x\n"]}},
        {"cfg": {"user": "a", "pwd": M, "n": [1.0, "  x\n"]}},
        {"auth": {"user": "a", "pwd": M, "n": [1.0, "  x\n"]}},
        {"auth": {"user": "a", "pwd": "hunter2", "n": [1.0, "  x\n"]}},
    ),
    "two in an object that moves whole": (
        {"cfg": {"pwd": "hunter2", "pin": "1234"}}, {"cfg": {"pwd": M, "pin": M}},
        {"auth": {"pwd": M, "pin": M}}, {"auth": {"pwd": "hunter2", "pin": "1234"}},
    ),
    "a key in the object changes as it moves": (
        {"cfg": {"user": "a", "pwd": "hunter2"}}, {"cfg": {"user": "a", "pwd": M}},
        {"auth": {"user": "a", "password": M}}, {"auth": {"user": "a", "password": "hunter2"}},
    ),
    "two of which each keeps its name": (
        {"api_key": "k1k1k1k1", "pass_word": "hunter2", "x": 1},
        {"api_key": M, "pass_word": M, "x": 1}, {"apiKey": M, "passWord": M, "x": 1},
        {"apiKey": "k1k1k1k1", "passWord": "hunter2", "x": 1},
    ),
    "at depth, in a list": (
        {"hosts": [{"name": "a", "pwd": "one11111"}, {"name": "b", "pwd": "two22222"}]},
        {"hosts": [{"name": "a", "pwd": M}, {"name": "b", "pwd": M}]},
        {"servers": {"hosts": [{"name": "a", "pwd": M}, {"name": "b", "pwd": M}]}},
        {"servers": {
            "hosts": [{"name": "a", "pwd": "one11111"}, {"name": "b", "pwd": "two22222"}]}},
    ),
    "behind an element that goes": (
        {"hosts": [None, {"pwd": "one11111"}, {"pwd": "two22222"}]},
        {"hosts": [None, {"pwd": M}, {"pwd": M}]},
        {"hosts": [{"pwd": M}, {"password": M}]},
        {"hosts": [{"pwd": "one11111"}, {"password": "two22222"}]},
    ),
    "wrapped where it stands": (
        {"token": "t" * 40}, {"token": LONG}, {"token": [LONG]}, {"token": ["t" * 40]},
    ),
    "inside of a text that moves": (
        {"cmd": "curl -H hunter2 x"}, {"cmd": f"curl -H {M} x"}, {"command": f"curl -H {M} x"},
        {"command": "curl -H hunter2 x"},
    ),
    "one under the same place, one beside it": (
        {"a": {"pwd": "one11111", "k": 1}, "pwd": "two22222"}, {"a": {"pwd": M, "k": 1}, "pwd": M},
        {"b": {"pwd": M, "k": 1}, "password": M},
        {"b": {"pwd": "one11111", "k": 1}, "password": "two22222"},
    ),
}  # fmt: skip
"""By what moves: the call, what the service saw of it, what it makes of that, and what is sent."""


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_that_moves_keeps_its_value_at_every_depth(kind: str) -> None:
    """What the service saw as a mask is sent as the caller's own, beside other values as well."""
    call, seen, repaired, sent = SECRETS[kind]
    assert same_json(correct_call(call, changes_between(seen, repaired)), sent)


@pytest.mark.parametrize(
    ("call", "seen", "repaired"),
    [
        ({"a": "one", "b": "two"}, {"a": M, "b": M}, {"c": M}),
        ({"a": "one", "b": "two"}, {"a": M, "b": M}, {"c": M, "d": M}),
        ({"a": {"x": "one", "y": "two"}}, {"a": {"x": M, "y": M}}, {"b": {"u": M, "v": M}}),
        ({"a": 1}, {"a": 1}, {"a": M}),
        ({"a": "one"}, {"a": M}, {"a": M, "b": M}),
        ({"a": "one"}, {"a": M}, {"a": f"Bearer {M}"}),
        ({"a": {"hunter2": 1, "k": 2}}, {"a": {M: 1, "k": 2}}, {"b": {M: 1}}),
        ({"a": 1}, {"a": 1}, {"a": 1, M: 2}),
    ],
)  # fmt: skip
def test_a_mask_whose_value_is_not_certain_is_never_sent(
    call: JsonObject, seen: JsonObject, repaired: JsonObject
) -> None:
    """Neither the mask nor a guess."""
    assert "stands behind a mask" in refused(call, changes_between(seen, repaired))


def test_an_object_with_a_masked_name_moves_whole() -> None:
    """Its names are the caller's, as its values are."""
    seen: JsonObject = {"env": {M: 1, "k": 2}}
    changes = changes_between(seen, {"environment": seen["env"]})
    assert correct_call({"env": {"hunter2": 1, "k": 2}}, changes) == {
        "environment": {"hunter2": 1, "k": 2}
    }


def test_what_holds_very_many_masks_is_not_followed() -> None:
    """A call whose masks would take long to follow is left to its caller."""
    seen: JsonObject = {"headers": {f"h{n}": M for n in range(300)}}
    changes = changes_between(seen, {"head": seen["headers"]})
    call: JsonObject = {"headers": {f"h{n}": f"s{n}" for n in range(300)}}
    assert "more than 200 masked parts" in refused(call, changes)


@given(st.data())
def test_no_mask_leaves_and_no_secret_is_lost(data: st.DataObject) -> None:
    """Whatever call with secrets: what moves arrives as the caller has it, or nothing is sent."""
    rng = data.draw(st.randoms(use_true_random=False))
    call = trees.call(rng, rng.randrange(4))
    call["login"] = {"password": f"hunter2-{rng.random()}", "rest": trees.value(rng, 2)}
    seen = DEFAULT_REDACTOR.parameters("tool", call)
    repaired = deepcopy(seen)
    repaired["signIn"] = repaired.pop("login")
    sent = correct_call(call, changes_between(seen, repaired))
    expected = deepcopy(call)
    expected["signIn"] = expected.pop("login")
    assert same_json(sent, expected)
    assert not is_redacted(sent)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([], "names no change"),
        ([made("replace", "/none", 1)], "does not fit"),
        ([made("replace", "", {})], "does not fit"),
        ([made("remove", "/list/5")], "does not fit"),
        ([made("replace", "/n", 10, 50), made("replace", "/n", 1, 50)], "holds another value"),
        ([made("replace", "/n", 10, 50.0)], "holds another value"),
        ([made("remove", "/list/0", None, 2)], "holds another value"),
        ([made("replace", "/deep", {}, {"a": 2})], "holds another value"),
    ],
)
def test_a_change_that_is_not_about_this_call_is_not_made(changes: list[Change], why: str) -> None:
    """What it takes away must be there, as it says."""
    assert why in refused({"n": 50, "list": [1, 2], "deep": {"a": 1}}, changes)


def test_a_change_says_what_it_replaces_or_says_nothing() -> None:
    """A service of another version may leave `from` out."""
    assert correct_call({"n": 50}, [made("replace", "/n", 10)]) == {"n": 10}
    assert correct_call({"n": 50}, [made("replace", "/n", 10, 50)]) == {"n": 10}


def test_a_value_that_no_change_names_is_never_altered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever went wrong on the way: nothing is sent, and the reason says which value it is."""
    call: JsonObject = {"files": [{"file_path": "a.py", "contents": "    return 2\n"}]}
    right: JsonObject = {"files": [{"path": "a.py", "contents": "    return 2\n"}]}
    wrong: JsonObject = {"files": [{"path": "a.py", "contents": "return 2"}]}
    changes = changes_between(call, right)
    assert correct_call(call, changes) == right
    monkeypatch.setattr(corrected_call, "apply", lambda *_: wrong)
    assert refused(call, changes) == (
        'the suggested change would alter "/files/0/contents", which it does not name'
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"path": "/channelName", "origin": "moved", "from": "/name", "why": "w",
          "rivals": ["/user"]}, "`channelName` or `user`?"),
        ({"path": "/limit", "origin": "unexplained", "why": "w"}, "nothing explains"),
    ],
)  # fmt: skip
def test_a_question_is_never_answered_by_a_guess(value: dict[str, Any], why: str) -> None:
    """Where another place would take a value, or nothing explains it, the caller decides."""
    account = Account.model_validate({"kept": 0, "values": [value]})
    assert why in refused({"n": 1}, [made("replace", "/n", 2)], account)
    settled = account.model_copy(update={"values": []})
    assert correct_call({"n": 1}, [made("replace", "/n", 2)], settled) == {"n": 2}
