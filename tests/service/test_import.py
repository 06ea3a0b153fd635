"""`aftercall import`: JSON lines into a running service, bad lines named and left out."""

import gzip
import json
from pathlib import Path

import pytest

from tests.service.running_service import RunningService, execution, finished
from tests.service.test_import_formats import lines_of

pytestmark = pytest.mark.real


def test_a_file_is_recorded(service: RunningService, tmp_path: Path) -> None:
    """Every line, in batches; a second import finds only duplicates."""
    records = [execution() for _ in range(1200)]
    file = tmp_path / "calls.jsonl"
    file.write_text(lines_of(*records))
    status, out, _ = finished("import", str(file), "--service", service.url)
    assert (status, out) == (0, "1,200 accepted, 0 duplicates, 0 rejected\n")
    assert all(service.is_stored(record) for record in records[::100])
    status, out, _ = finished("import", str(file), "--service", service.url)
    assert (status, out) == (0, "0 accepted, 1,200 duplicates, 0 rejected\n")


def test_bad_lines_are_named_and_skipped(service: RunningService, tmp_path: Path) -> None:
    """Whether this side or the service finds what is wrong with them; the rest is recorded."""
    good = [execution(), execution(), execution()]
    file = tmp_path / "calls.jsonl"
    file.write_text(
        lines_of(good[0])
        + "{not json\n"
        + "\n"
        + lines_of(execution(foo=1), 7, good[1])
        + lines_of(good[0] | {"agent": "somebody else"})
        + lines_of(execution(timestamp="2150-01-01T00:00:00Z"))
        + '{"result": NaN}\n'
        + json.dumps(good[2])  # without a newline at the end
    )
    status, out, err = finished("import", str(file), "--service", service.url)
    assert status == 0
    assert out == "3 accepted, 0 duplicates, 6 rejected\n"
    lines = [line for line in err.splitlines() if line.startswith("aftercall: line ")]
    said = dict(line.removeprefix("aftercall: line ").split(": ", 1) for line in lines)
    assert set(said) == {"2", "4", "5", "7", "8", "9"}
    assert "malformed JSON" in said["2"]
    assert "unknown field `foo`" in said["4"]
    assert "object" in said["5"]
    assert "other content" in said["7"]
    assert "timestamp" in said["8"]
    assert all(service.is_stored(record) for record in good)


def test_a_dry_run_sends_nothing(service: RunningService) -> None:
    """It checks the lines without a service."""
    record = execution()
    status, out, err = finished("import", "-", "--dry-run", stdin=lines_of(record, {"a": 1}))
    assert (status, out) == (0, "1 valid, 0 duplicates, 1 rejected\n")
    assert err.startswith("aftercall: line 2: ")
    assert not service.is_stored(record)


def test_a_line_beyond_all_bounds_is_skipped(service: RunningService, tmp_path: Path) -> None:
    """Without reading it into memory at once."""
    good, large = execution(), execution(result="x" * 6_000_000)
    file = tmp_path / "calls.jsonl"
    file.write_text('{"x": "' + "x" * 20_000_000 + '"}\n' + lines_of(good, large))
    status, out, err = finished("import", str(file), "--service", service.url)
    assert (status, out) == (0, "2 accepted, 0 duplicates, 1 rejected\n")
    assert "line 1: is longer than" in err
    assert service.is_stored(good)
    assert service.is_stored(large)


def test_without_a_service_it_says_how_to_start_one(tmp_path: Path) -> None:
    """And what was taken until then."""
    status, out, err = finished(
        "import", "-", "--service", "http://127.0.0.1:1", stdin=lines_of(execution())
    )
    assert status == 1
    assert out == "0 accepted, 0 duplicates, 0 rejected\n"
    assert "aftercall serve" in err


def test_a_file_that_is_not_there_is_named(service: RunningService) -> None:
    """In one line."""
    status, _, err = finished("import", "/no/such/file", "--service", service.url)
    assert status == 1
    assert err == "aftercall: cannot read /no/such/file: No such file or directory\n"


def test_a_packed_file_that_is_cut_off_says_what_was_taken(
    service: RunningService, tmp_path: Path
) -> None:
    """And that the file ends too early."""
    file = tmp_path / "calls.jsonl.gz"
    packed = gzip.compress(lines_of(*(execution() for _ in range(2000))).encode())
    file.write_bytes(packed[: len(packed) // 2])
    status, out, err = finished("import", str(file), "--service", service.url)
    assert status == 1
    assert out.endswith("0 rejected\n")
    assert "the file ends too early" in err
