"""`.tool_promotions.json`: exactly the seed's form, faults by entry, writing that is whole."""

import contextlib
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import ConfigurationError
from aftercall.models import Promotion
from aftercall.promotions_file import (
    PromotionsFileError,
    missing_files,
    parse_promotions,
    read_promotions,
    render_promotions,
    update_promotions,
    write_promotions,
)
from tests.sdk.strategies import names, promotions

SEED = """{
  "code_generator": {
    "evolved_version": "1.1.0",
    "evolved_file": "tools/executable/code_generator_v1_1.py",
    "original_version": "1.0.0",
    "reason": "Evolved to fix: timeout on large files",
    "mutation": "add streaming output for large code generation",
    "promoted_at": "2024-01-15T10:30:45Z"
  },
  "translator": {
    "evolved_version": "1.2.0",
    "evolved_file": "tools/executable/translator_v1_2.py",
    "original_version": "1.1.0",
    "reason": "Evolved to fix: incorrect handling of code blocks",
    "mutation": "preserve code formatting in translations",
    "promoted_at": "2024-01-16T14:22:10Z"
  }
}
"""  # seed 002, "Data Structures"

files = st.dictionaries(names, promotions, max_size=4)


def test_the_seeds_example_comes_back_byte_for_byte() -> None:
    """What is read can be written as it was."""
    found = parse_promotions(SEED)
    assert list(found) == ["code_generator", "translator"]
    assert found["translator"].evolved_version == "1.2.0"
    assert found["translator"].promoted_at == datetime(2024, 1, 16, 14, 22, 10, tzinfo=UTC)
    assert render_promotions(found) == SEED


@given(files)
def test_what_is_rendered_is_read_back(found: dict[str, Promotion]) -> None:
    """Whatever the texts hold; and the text is plain JSON for everybody else."""
    text = render_promotions(found)
    assert parse_promotions(text) == found
    assert list(json.loads(text)) == list(found)


FAULTS = {
    "a version that is none": ('"1.2.0"', '"new"', "evolved_version: 'new' is no version"),
    "no time": ('"2024-01-16T14:22:10Z"', '"soon"', "promoted_at: must be an RFC 3339"),
    "a time without a zone": ("14:22:10Z", "14:22:10", "promoted_at"),
    "an unknown key": ('"reason": "Evolved to fix: inc', '"reasons": "E', "did you mean `reason`"),
    "a key in camel case": ('"evolved_version": "1.2', '"evolvedVersion": "1.2', "unknown field"),
    "a missing key": ('    "original_version": "1.1.0",\n', "", "original_version: is missing"),
    "a number": ('"1.2.0"', "1.2", "evolved_version: should be a valid string"),
    "null": ('"1.2.0"', "null", "evolved_version: should be a valid string"),
    "a way out": ('"tools/executable/tr', '"tools/../../tr', "names no file"),
    "an absolute path": ('"tools/executable/tr', '"/etc/tr', "names no file"),
    "a drive": ('"tools/executable/tr', '"C:/tr', "names no file"),
    "a backslash": ('"tools/executable/tr', '"tools\\\\tr', "names no file"),
    "no file": ('"tools/executable/translator_v1_2.py"', '""', "names no file"),
    "a line end in a path": ('"tools/executable/tr', '"a\\ntr', "names no file"),
    "a NUL character": ("preserve code", "preserve\\u0000code", "NUL"),
    "a lone surrogate": ("preserve code", "preserve\\ud800code", "surrogate"),
    "no comma": ('"original_version": "1.1.0",', '"original_version": "1.1.0"', "no JSON"),
    "a comma too many": ('10Z"\n  }\n}', '10Z",\n  }\n}', "no JSON"),
    "an open string": ('"1.2.0",', '"1.2.0,', "no JSON"),
    "an entry that is none": ('"translator": {', '"other": 5, "translator": {', "an object"),
    "a name without an end": ('"translator": {', '"": {', "the name of a namespace"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "problem"), FAULTS.values(), ids=FAULTS)
def test_every_fault_is_named_with_its_entry(old: str, new: str, problem: str) -> None:
    """In the second of two entries, so that the place is no chance; no JSON by its line."""
    at = SEED.rindex(old)
    with pytest.raises(PromotionsFileError) as fault:
        parse_promotions(SEED[:at] + new + SEED[at + len(old) :])
    assert problem in str(fault.value)
    is_json = problem != "no JSON"
    assert str(fault.value).startswith("entry " if is_json else "no JSON")
    assert is_json == (fault.value.entry is not None)


@pytest.mark.parametrize("text", ["", "[]", "\n\n null", SEED + "x", SEED[:200], "{" * 5000])
def test_what_is_no_file_at_all_is_refused(text: str) -> None:
    with pytest.raises(PromotionsFileError):
        parse_promotions(text)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ('"translator"', '"code_generator"', "code_generator"),
        ('"mutation": "preserve', '"reason": "", "mutation": "preserve', "reason"),
    ],
)
def test_a_key_that_stands_twice_is_refused(old: str, new: str, name: str) -> None:
    """JSON parsers would take the last in silence."""
    with pytest.raises(PromotionsFileError, match=f"{name!r} stands twice"):
        parse_promotions(SEED.replace(old, new))


@given(st.text(max_size=200) | st.integers(0, len(SEED)).map(lambda cut: SEED[:cut]))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other exception gets out."""
    with contextlib.suppress(PromotionsFileError):
        parse_promotions(text)


def test_a_promotion_without_a_time_cannot_be_written() -> None:
    """The form has no place for it; nor for a path that leaves the folder."""
    one = parse_promotions(SEED)["translator"]
    for changes in ({"promoted_at": None}, {"evolved_file": "../x.py"}):
        with pytest.raises(ConfigurationError, match="entry 'translator'"):
            render_promotions({"translator": one.model_copy(update=changes)})


def test_a_file_is_written_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    """A link stays a link, and nothing else is left in the folder."""
    target, link = tmp_path / "kept" / "promotions.json", tmp_path / "link.json"
    target.parent.mkdir()
    target.write_text("{}")
    target.chmod(0o640)
    link.symlink_to(target)
    write_promotions(link, parse_promotions(SEED))
    assert link.is_symlink()
    assert target.read_text() == SEED
    assert target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(target.parent) == ["promotions.json"]  # noqa: PTH208  # names alone
    assert read_promotions(link) == parse_promotions(SEED)


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    """Also when the fault is in what is to be written."""
    path = tmp_path / ".tool_promotions.json"
    write_promotions(path, parse_promotions(SEED))
    broken = parse_promotions(SEED)["translator"].model_copy(update={"promoted_at": None})
    with pytest.raises(ConfigurationError):
        write_promotions(path, {"translator": broken})
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_promotions(tmp_path / "nowhere" / "x.json", {})
    assert path.read_text() == SEED


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"), (b'{\n "\xff"', "cannot be read: 'utf-8'"),
        (b'{"t": 1}', r"p\.json: entry 't': the entry must be"),
    ],
)  # fmt: skip
def test_reading_tells_what_is_wrong_with_the_file(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    """With its name: missing, not UTF-8, malformed; not a byte order mark."""
    path = tmp_path / "p.json"
    assert read_promotions(path, missing_ok=True) == {}
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PromotionsFileError, match=said):
        read_promotions(path)
    with pytest.raises(PromotionsFileError, match="cannot be read: Is a directory"):
        read_promotions(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + SEED.encode())
    assert read_promotions(path) == parse_promotions(SEED)


def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """Sixteen threads add one entry each, and none is lost."""
    path = tmp_path / ".tool_promotions.json"
    one = parse_promotions(SEED)["translator"]

    def add(number: int) -> None:
        update_promotions(path, lambda held: {**held, f"tool_{number}": one})

    threads = [threading.Thread(target=add, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_promotions(path)) == sorted(f"tool_{number}" for number in range(16))


def test_missing_files_are_found(tmp_path: Path) -> None:
    """Gone, a folder, or led out of the root by a symbolic link."""
    root, outside = tmp_path / "root", tmp_path / "outside.py"
    root.mkdir()
    outside.write_text("")
    (root / "here.py").write_text("")
    (root / "folder").mkdir()
    (root / "link.py").symlink_to(outside)
    (root / "loop.py").symlink_to(root / "loop.py")
    (root / "inner.py").symlink_to(root / "here.py")
    one = parse_promotions(SEED)["translator"]
    names = ["here.py", "inner.py", "gone.py", "folder", "link.py", "loop.py"]
    found = missing_files(
        {name: one.model_copy(update={"evolved_file": name}) for name in names}
        | {"registered": one.model_copy(update={"evolved_file": None})},
        root,
    )
    assert list(found) == ["gone.py", "folder", "link.py", "loop.py"]
    assert "lies outside" in found["link.py"]


def test_a_path_beyond_its_bound_is_refused_with_its_entry() -> None:
    """As any other mistake of the file, and not as a fault of who reads it."""
    entry = {
        "evolved_version": "1.1.0", "evolved_file": "a" * 5_000, "original_version": "1.0.0",
        "reason": "", "mutation": "", "promoted_at": "2024-01-15T10:30:45Z",
    }  # fmt: skip
    with pytest.raises(PromotionsFileError, match=r"entry 'shout': evolved_file: .*4,?096"):
        parse_promotions(json.dumps({"shout": entry}))
