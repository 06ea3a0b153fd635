"""The archive's form: what is whole is read as it was, and nothing else is believed."""

import gzip
import json
import random
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mongo.archive import KINDS
from service.moving import lines
from service.moving.checksum import Tally, checksum_of_all
from service.moving.lines import ArchiveError, BadLineError
from service.moving.packing import unpacked, written
from service.moving.reading import BATCH_ROWS, ArchiveReader
from tests.service.archive_samples import (
    HEADER,
    archive_lines,
    changed,
    read,
    read_file,
    sample,
    samples,
    write_lines,
)

WHOLE = archive_lines(samples())
FIRST_RECORD = 2
"""Index of the first execution's line; its number is one more."""


def test_what_is_written_is_read() -> None:
    """Every record of every kind, in the order of the kinds."""
    rows = read(WHOLE)
    assert [row.kind for row in rows] == [kind.name for kind in KINDS for _ in range(3)]
    assert [row.fields for row in rows] == [row for rows in samples().values() for row in rows]


def test_the_memory_is_for_one_batch(tmp_path: Path) -> None:
    """However many records a kind has, a batch has a bounded number of them."""
    records = samples(1) | {"facts": [sample(KINDS[-1], n) for n in range(3 * BATCH_ROWS + 7)]}
    path = write_lines(tmp_path / "a.gz", archive_lines(records))
    with unpacked(str(path)) as stream:
        sizes = [len(b.rows) for b in ArchiveReader(stream).batches() if b.kind == "facts"]
    assert sizes == [BATCH_ROWS] * 3 + [7]


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 50), max_size=20))
def test_the_checksum_does_not_depend_on_the_order(
    shuffle: random.Random, numbers: list[int]
) -> None:
    """Two stores that order their records differently agree, and a double counts twice."""
    rows = [sample(KINDS[0], number) for number in numbers]
    first, second = Tally(), Tally()
    for row in rows:
        first.add(row)
    shuffle.shuffle(rows)
    for row in rows:
        second.add(dict(reversed(row.items())))
    assert first == second
    doubled = Tally(second.count, second.total)
    doubled.add(sample(KINDS[0], 99))
    doubled.add(sample(KINDS[0], 99))
    assert doubled.checksum != second.checksum


def test_the_total_knows_which_kind_a_record_is_of() -> None:
    """The same records under another kind's name have another checksum."""
    tally = Tally(1, 5)
    assert checksum_of_all({"a": tally}) != checksum_of_all({"b": tally})


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a"])
def test_a_file_is_packed_private_and_read_again(tmp_path: Path, name: str) -> None:
    """By zstd where its name says so, else by gzip; nobody else may read it."""
    path = tmp_path / name
    path.write_text("what had the name before")
    with written(str(path)) as stream:
        stream.write(b"".join(line + b"\n" for line in WHOLE))
        assert path.read_text() == "what had the name before"
    magic = b"\x28\xb5\x2f\xfd" if name.endswith(".zst") else b"\x1f\x8b"
    assert path.read_bytes().startswith(magic)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_file(path).header == HEADER
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_what_fails_midway_leaves_no_file(tmp_path: Path) -> None:
    """Neither one that looks whole, nor a half one, and what had the name stays."""
    path = tmp_path / "a.gz"
    path.write_text("before")

    def half() -> None:
        with written(str(path)) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """In one line."""
    missing = tmp_path / "none" / "a.gz"
    with pytest.raises(ArchiveError, match=r"cannot write .*No such file"), written(str(missing)):
        pass


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, name: str, share: float) -> None:
    """Wherever; the message says at which line it ends."""
    path = tmp_path / name
    with written(str(path)) as stream:
        stream.write(b"".join(line + b"\n" for line in WHOLE))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(BadLineError, match=r"line \d+ of the archive"):
        read_file(path)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_a_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    """In whichever byte of the packed file that holds content."""
    path = tmp_path / name
    with written(str(path)) as stream:
        stream.write(b"".join(line + b"\n" for line in WHOLE))
    whole = path.read_bytes()
    for place in range(20, len(whole) - 20, 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ArchiveError):
            read_file(path)


@pytest.mark.parametrize("number", range(1, len(WHOLE) + 1))
def test_every_line_that_is_left_out_is_missed(number: int) -> None:
    """Header, record, opening, closing or end."""
    with pytest.raises(BadLineError) as refused:
        read(WHOLE[: number - 1] + WHOLE[number:])
    assert refused.value.number >= number or number == 1


@pytest.mark.parametrize("number", range(2, len(WHOLE) + 1))
def test_every_line_that_comes_twice_is_noticed(number: int) -> None:
    """At the latest by the checksum of its kind."""
    with pytest.raises(BadLineError):
        read(WHOLE[:number] + WHOLE[number - 1 :])


def edited(index: int, edit: Callable[[bytes], bytes]) -> list[bytes]:
    """The archive with one line changed."""
    return [*WHOLE[:index], edit(WHOLE[index]), *WHOLE[index + 1 :]]


def without_data(line: bytes) -> bytes:
    """A record that lacks a field."""
    return json.dumps({k: v for k, v in json.loads(line).items() if k != "data"}).encode()


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        pytest.param(lambda line: line[:-5], "is not JSON", id="broken"),
        pytest.param(lambda line: b"\xff" + line, "is not JSON", id="no-text"),
        pytest.param(lambda _: b"7", "is not a JSON object", id="number"),
        pytest.param(lambda _: b"[" * 100_000, "is not JSON", id="deep"),
        pytest.param(lambda _: b"", "is not JSON", id="blank"),
        pytest.param(without_data, "lacks data", id="lacking"),
        pytest.param(lambda line: changed(line, foo=1), "must not have", id="unknown-field"),
        pytest.param(lambda line: changed(line, position="1"), "no integer in position", id="type"),
        pytest.param(lambda line: changed(line, position=True), "no integer", id="flag-for-number"),
        pytest.param(lambda line: changed(line, workspace=None), "no value in workspace", id="key"),
        pytest.param(lambda line: changed(line, queued=1), "no flag in queued", id="flag"),
    ],
)
def test_a_line_that_is_no_record_is_named(edit: Callable[[bytes], bytes], problem: str) -> None:
    """Its number and what is wrong with it, without its content."""
    with pytest.raises(BadLineError, match=problem) as refused:
        read(edited(FIRST_RECORD, edit))
    assert refused.value.number == FIRST_RECORD + 1
    assert str(refused.value).startswith(f"line {FIRST_RECORD + 1} of the archive ")


def test_bytes_that_are_none_are_named() -> None:
    """Where a field holds base64."""
    index = WHOLE.index(lines.encode_kind("knowledge")) + 1
    with pytest.raises(BadLineError, match="no bytes in data"):
        read(edited(index, lambda line: changed(line, data="#")))


def test_a_changed_value_is_found_by_the_checksum() -> None:
    """At the line that closes its kind."""
    with pytest.raises(BadLineError, match="checksum of the executions") as refused:
        read(edited(FIRST_RECORD, lambda line: changed(line, data="another")))
    assert refused.value.number == FIRST_RECORD + 4


def test_a_changed_checksum_is_found() -> None:
    """Of a kind, and of the whole."""
    with pytest.raises(BadLineError):
        read(edited(FIRST_RECORD + 3, lambda line: changed(line, checksum="0" * 64)))
    with pytest.raises(BadLineError, match="other counts or another checksum"):
        read(edited(len(WHOLE) - 1, lambda line: changed(line, checksum="0" * 64)))


def test_what_follows_the_end_is_refused() -> None:
    """Somebody has put two files together."""
    with pytest.raises(BadLineError, match="follows the end"):
        read([*WHOLE, *WHOLE])


def test_an_archive_of_a_newer_version_says_what_to_do() -> None:
    """Upgrade; nothing of it is read."""
    told = edited(0, lambda line: changed(line, version=2, made_by="9.9"))
    with pytest.raises(ArchiveError, match=r"version 2.*upgrade.*9\.9"):
        read(told)


def test_an_archive_of_another_layout_is_refused() -> None:
    """Its records have other fields."""
    with pytest.raises(ArchiveError, match="layout 123"):
        read(edited(0, lambda line: changed(line, layout="123")))


def test_an_archive_of_the_layout_before_is_read() -> None:
    """It lacks the kinds that came later, and has none of them; the others are as they were."""
    layout = "5a5ed3385dbc"
    former = {kind: rows for kind, rows in samples().items() if kind not in lines.LATER_KINDS}
    told = archive_lines(former, HEADER.model_copy(update={"layout": layout}))
    assert [row.fields for row in read(told)] == [row for rows in former.values() for row in rows]
    with pytest.raises(BadLineError, match="does not open the answers"):
        read([lines.encode_header(HEADER), *told[1:]])


def test_a_header_that_lacks_something_is_named() -> None:
    """And so is a first line that is none."""
    with pytest.raises(BadLineError, match=r"no complete header \(id\)"):
        read(edited(0, lambda line: changed(line, id="x")))
    with pytest.raises(BadLineError, match="not the header"):
        read(WHOLE[1:])


def test_a_plain_file_is_read_too(tmp_path: Path) -> None:
    """As it is after `gunzip`."""
    path = tmp_path / "plain.jsonl"
    path.write_bytes(gzip.decompress(write_lines(tmp_path / "a.gz", WHOLE).read_bytes()))
    assert checksum_of_all(read_file(path).tallies) == json.loads(WHOLE[-1])["checksum"]
