"""Secrets of every kind are masked, what only looks like one is not, and hashes are keyed."""

import random
from pathlib import Path

import pytest

from aftercall.files import key_file
from aftercall.models import FailedCall
from aftercall.redaction import Redactor
from bench.quality import secret_masks

KINDS = [
    (section, kind) for section in secret_masks.SECTIONS for kind in secret_masks.kinds()[section]
]
NAMES = [
    (section, n)
    for section in secret_masks.SECTIONS
    for n in secret_masks.kinds()[f"{section}_names"]
]


def drawing(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311  # draws that repeat


@pytest.mark.parametrize(("section", "kind"), KINDS, ids=lambda each: each)
def test_a_secret_of_this_kind_is_masked_wherever_it_stands(section: str, kind: str) -> None:
    """In a parameter, the context, an error, a result and a list."""
    rng = drawing(kind)
    text, secret = secret_masks.planted(secret_masks.kinds()[section][kind], rng)
    for call in secret_masks.carriers(text):
        assert secret_masks.hidden(call, secret, Redactor()), (text, call)


@pytest.mark.parametrize(("section", "name"), NAMES, ids=lambda each: each)
def test_a_value_under_this_name_is_masked_and_what_repeats_it(section: str, name: str) -> None:
    """As a parameter, deep in one, as an environment's entry and in a result."""
    value = secret_masks.drawn(secret_masks.kinds()[f"{section}_names"][name], drawing(name))
    for call in secret_masks.named(name, value):
        assert secret_masks.hidden(call, value, Redactor()), (value, call)


@pytest.mark.parametrize("section", ["look_alike", "unseen_look_alike"])
def test_what_only_looks_like_a_secret_stays(section: str) -> None:
    """At most 1 in 100."""
    found = secret_masks.false_masks(section, draws=1, seed=11)
    assert found.share <= 0.01, found.others


@pytest.mark.parametrize(
    "text",
    [
        "badge_no=X12345",
        '{"badge_no": "X12345"}',
        "the badge no: X12345",
        "badgeNo is X12345",
        "--badge-no X12345",
    ],
)
def test_names_of_the_user_count_in_texts(text: str) -> None:
    """In every writing; for others the text stays."""
    assert "X12345" not in Redactor.create(extra_names=["badge_no"]).text(text)
    assert Redactor().text(text) == text


def test_under_an_allowlist_a_secret_is_masked_and_a_hash_needs_the_key() -> None:
    """No dictionary of passwords tells what was sent; equal values are equal under one key."""
    one, other = (
        Redactor.create(allowlists={"t": ["q"]}, hash_key=key) for key in (b"1" * 32, b"2" * 32)
    )
    sent = {"q": "x", "password": "letmein", "to": "ann"}
    call = FailedCall.model_validate(
        {"agent": "a", "toolName": "t", "parameters": sent, "error": {"message": "no letmein"}}
    )
    kept = one.call(call)
    assert kept.parameters["password"] == "[redacted:string:1-8]"  # noqa: S105  # a mask
    assert "letmein" not in kept.model_dump_json()
    assert (
        kept.parameters["to"]
        == one.parameters("t", sent)["to"]
        != other.parameters("t", sent)["to"]
    )


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    """Who comes second reads what the first has made."""
    path = tmp_path / "new" / "hash.key"
    assert key_file(path) == key_file(path)
    assert len(path.read_bytes()) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"short")
    with pytest.raises(ValueError, match="remove it"):
        key_file(path)
