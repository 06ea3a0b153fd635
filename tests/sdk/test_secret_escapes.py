"""Escapes open no mask: what a text decodes to is searched as the text itself is."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.models import FailedCall, ToolSpec
from aftercall.redaction import REDACTED, Redactor
from bench.quality import secret_escapes, secret_masks
from tests.growth import growth

TOKEN = "ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789"
ALL = secret_escapes.SINGLE | secret_escapes.BASE64


@pytest.mark.parametrize("name", ALL)
def test_a_token_behind_this_escape_is_masked_and_what_stands_around_it_stays(name: str) -> None:
    """Of the text around it only base64 goes with it, for it can only be masked whole."""
    text = ALL[name](TOKEN)
    masked = Redactor().text(f"before {text} after")
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert not any(TOKEN in each for each in secret_escapes.readable(masked))


def test_nine_kinds_in_ten_are_masked_behind_every_escape() -> None:
    """Asked are 0.98 behind an escape and 0.95 in base64; one of each kind is drawn here."""
    escaped = secret_escapes.measure(secret_escapes.SINGLE, tokens=False)
    assert escaped.share >= 0.98, escaped.others
    in_base64 = secret_escapes.measure(secret_escapes.BASE64, tokens=True)
    assert in_base64.share >= 0.95, in_base64.others


@given(st.integers(min_value=0, max_value=10**6))
@settings(max_examples=60)
def test_a_token_behind_three_layers_in_any_order_is_masked(seed: int) -> None:
    """Drawn from URL, JSON, HTML, base64 and code points."""
    text = secret_escapes.nested(TOKEN, random.Random(seed))  # noqa: S311  # draws that repeat
    masked = Redactor().text(text)
    assert not any(TOKEN in each for each in secret_escapes.readable(masked))
    assert Redactor().text(masked) == masked


@pytest.mark.parametrize("name", ["contraseña", "пароль", "パスワード", "mật_khẩu"])
def test_names_in_other_languages_count_in_the_json_that_python_writes(name: str) -> None:
    """`json.dumps` escapes all that is not ASCII."""
    text = secret_escapes.json.dumps({name: "Trustno1!", "mode": "fast"})
    masked = Redactor().text(text)
    assert "Trustno1" not in masked
    assert '"mode": "fast"' in masked


def test_a_secret_in_base64_is_masked_wherever_else_it_is_repeated() -> None:
    """A tool that decodes what it was given says it in its error."""
    call = FailedCall.model_validate(
        {"agent": "a", "toolName": "t",
         "parameters": {"body": secret_escapes.BASE64["base64"]("password=Trustno1!")},
         "error": {"message": "the sign of Trustno1! is not allowed"}}
    )  # fmt: skip
    assert "Trustno1" not in Redactor().call(call).model_dump_json()


@pytest.mark.parametrize(
    "text",
    [r"a%20b%2Fc", r"caf\u00e9", r"C:\\new\\table", "&lt;b&gt;tom &amp; jerry", "\x1b[32mok\x1b[0m",
     "aGVsbG8gd29ybGQsIHRoaXMgaXMgcGxhaW4=", "eyJuYW1lIjoiYW1iZXIiLCJhZ2UiOjMwfQ==",
     "100% of %d", r"\q \u12 &nosuch; %zz", "pk_live_aB3dE5fG7hJ9kL1mN3pQ5rS7",
     "sk-learn-contrib-categorical-encoders"],
)  # fmt: skip
def test_escapes_without_a_secret_stay_as_they_are(text: str) -> None:
    """They are what is learned from; a publishable key and a package are no secrets."""
    assert Redactor().text(text) == text


def test_look_alikes_of_the_fifth_list_stay() -> None:
    """At most 1 in 100."""
    found = secret_masks.false_masks("fifth_look_alike", draws=1, seed=11)
    assert found.share <= 0.01, found.others


@pytest.mark.parametrize(
    "unit",
    ["key= ", "%25", r"\\", "&amp;", "aGVsbG8gd29ybGQ ", "sess-", "xx-key_", "sk-a-", "password= ",
     "%6b%65%79= ", "\x1b["],
)  # fmt: skip
def test_what_escapes_and_names_cost_grows_with_the_text_alone(unit: str) -> None:
    """Eight times as much takes nowhere near 64 times as long."""
    redactor = Redactor()
    work = growth(lambda size: redactor.text(unit * (size // len(unit))), 8_000, times=8)
    assert work < 24


def test_a_text_of_nothing_but_names_is_masked_from_where_no_honest_one_goes_on() -> None:
    """Each name costs a dozen patterns, so that their number has a bound."""
    masked = Redactor().text("token: x " * 2000 + "password=Trustno1!")
    assert masked.startswith("token: x token: x ")
    assert "Trustno1" not in masked
    assert REDACTED.search(masked)


IDENTIFIED = {
    "agent": TOKEN, "serverName": "https://bot:Trustno1@host/mcp", "toolName": f"run_{TOKEN}",
    "toolVersion": TOKEN, "parameters": {"q": 1}, "error": {"type": TOKEN, "message": "m"},
}  # fmt: skip


def test_what_identifies_a_call_tells_no_secret() -> None:
    """Agent, server, tool, version and the type of the error; two secrets stay two."""
    masked = Redactor().call(FailedCall.model_validate(IDENTIFIED))
    told = masked.model_dump_json()
    assert TOKEN not in told
    assert "Trustno1" not in told
    assert masked.server_name is not None
    assert masked.server_name.endswith("@host/mcp")
    other = Redactor().call(FailedCall.model_validate(IDENTIFIED | {"agent": TOKEN[:-1] + "8"}))
    assert other.agent != masked.agent
    assert Redactor().call(masked) == masked


def test_a_tool_is_registered_under_the_name_that_its_calls_have() -> None:
    """Or nothing that is known of it would be found."""
    tool = Redactor().tool(
        ToolSpec(name=IDENTIFIED["toolName"], server_name=IDENTIFIED["serverName"])
    )
    call = Redactor().call(FailedCall.model_validate(IDENTIFIED))
    assert (tool.name, tool.server_name) == (call.tool_name, call.server_name)
