"""The shipped corpus: every entry is what it says.

`python -m tests.ingest.test_seed` writes the signatures anew, where errors are read in another way.
"""

import json
from pathlib import Path

import pytest

from aftercall.models import ExecutionError
from ingest.seed import SeedCorpusError, load_seed
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.rows.documents import SeedEntry
from tests.retrieval.cases import answer_to, make_case, object_schema


def signatures(entry: SeedEntry) -> list[str]:
    """Of an entry's messages, as reading an error gives them."""
    errors = [ExecutionError(message=message) for message in entry.messages]
    return [read_error(error, entry.failed).signature for error in errors]


def test_every_message_of_every_entry_leads_back_to_it() -> None:
    """An error of one of the corpus's forms finds its entry by signature alone."""
    book = load_seed()
    assert len(book.entries) >= 40
    for entry in book.entries:
        for message in entry.messages:
            reading = read_error(ExecutionError(message=message), entry.failed)
            assert entry in book.find_entries(reading, entry.tool_name or "any"), message
        assert entry.signatures == signatures(entry)


def test_entries_of_one_tool_do_not_leak_to_others() -> None:
    """An entry with a tool holds for that tool only."""
    book = load_seed()
    entry = next(entry for entry in book.entries if entry.tool_name)
    reading = read_error(ExecutionError(message=entry.messages[0]), entry.failed)
    assert entry not in book.find_entries(reading, "some_other_tool")


@pytest.mark.parametrize(
    ("said", "meant"),
    [("Berlin", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin"), ("Asia/Tokio", "Asia/Tokyo")],
)
def test_day_one_mends_a_time_zone(said: str, meant: str) -> None:
    """Without any history the corpus's catalogue names the zone, and the evidence says so."""
    message = f"Invalid timezone: 'No time zone found with key {said}'"
    reading = read_error(ExecutionError(message=message), {"timezone": said})
    seeds = load_seed().find_entries(reading, "get_current_time")
    schema = object_schema(timezone="string")
    case = make_case({"timezone": said}, message, schema=schema, seeds=seeds)
    best = answer_to(case).response.suggestions[0]
    assert best.corrected_parameters == {"timezone": meant}
    assert best.evidence.sources == ["seed"]


@pytest.mark.parametrize(
    "line",
    [
        "{not json",
        '{"pattern": "x"}',
        '{"pattern":"x","category":"timeout","messages":[],"common_mistake":"","correction":"",'
        '"lesson":"","catalogue":"no_such_list"}',
        '{"pattern":"x","category":"timeout","messages":[],"common_mistake":"","correction":"",'
        '"lesson":"","failed":{"a":1},"successful":{"b":2},'
        '"edits":[{"kind":"rename","name":"a","to":"b"}]}',
    ],
)
def test_a_damaged_line_is_named(line: str) -> None:
    """The message says which line of the corpus is wrong."""
    with pytest.raises(SeedCorpusError, match="line 1"):
        load_seed(line)


if __name__ == "__main__":
    corpus = Path("ingest/seed_corpus.jsonl")
    first, *lines = corpus.read_text("utf-8").splitlines()
    made = []
    for line in lines:
        found = signatures(SeedEntry.model_validate_json(line))
        made.append(json.dumps(json.loads(line) | {"signatures": found}, ensure_ascii=False))
    corpus.write_text("\n".join((first, *made, "")), "utf-8")
