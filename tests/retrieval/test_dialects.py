"""Each sentence form of the table is tested with the real sentence that it was made for."""

import tomllib
from importlib.resources import files
from typing import Any

import pytest

from retrieval.knowledge.reading.faults import Fault, read_text
from retrieval.knowledge.reading.reader import faults_in


def _table(name: str) -> dict[str, Any]:
    text = files("retrieval").joinpath(f"knowledge/reading/{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


FORMS: list[dict[str, Any]] = _table("dialects")["forms"]
PHRASES: list[dict[str, Any]] = [
    row for rows in _table("phrases")["families"].values() for row in rows
]


def _as_listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _reads(fault: Fault, wanted: dict[str, Any]) -> bool:
    return all(_as_listed(getattr(fault, name)) == value for name, value in wanted.items())


@pytest.mark.parametrize(
    "form", FORMS, ids=[f"{form['dialect']}-{number}" for number, form in enumerate(FORMS)]
)
def test_a_form_reads_the_sentence_that_it_was_made_for(form: dict[str, Any]) -> None:
    """The kind, the place as the text spells it, and what is stated beside."""
    found = faults_in(form["example"])
    assert any(_reads(fault, form["reads"]) for fault in found), found


@pytest.mark.parametrize("phrase", PHRASES, ids=[row["pattern"].strip()[:60] for row in PHRASES])
def test_a_phrase_reads_its_example(phrase: dict[str, Any]) -> None:
    """The kind, and the name where the sentence has one."""
    found = list(read_text(phrase["example"]))
    assert any(_reads(fault, phrase["reads"]) for fault in found), found
