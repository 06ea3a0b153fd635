"""Versioned files: named from script and version alone, in its folder, never overwritten."""

import fcntl
import os
import re
import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aftercall.errors import ConfigurationError
from aftercall.evolution.files import create_beside, resolve_script, version_in, versioned_name
from aftercall.files import append_line
from aftercall.models.tools import VersionNumber

HOSTILE = st.text(
    st.sampled_from(string.ascii_letters + "._-/\\ \n\t\r;$`'\"<>|&*?~:%\u202eü\u0301日"),
    min_size=1,
) | st.text(min_size=1)
VERSIONS = st.builds(
    VersionNumber, st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.integers(0, 99)
)


@given(name=HOSTILE, version=VERSIONS)
@example(name="../../evil", version=VersionNumber(1, 1))
@example(name="..", version=VersionNumber(1, 1))
@example(name="-rf.py", version=VersionNumber(1, 1))
@example(name="_v1_1.py", version=VersionNumber(1, 2))
@example(name="x" * 300 + ".py", version=VersionNumber(1, 1))
def test_whatever_a_script_is_called_its_versions_stay_in_its_folder(
    name: str, version: VersionNumber
) -> None:
    """One visible, printable segment of a path that gives its version back; or a clear error."""
    try:
        made = versioned_name(name, version)
    except ConfigurationError:
        assert (
            not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9]{1,10})?", name) or len(name) > 100
        )
        return
    assert os.path.basename(made) == made  # noqa: PTH119  # the plain truth about a segment
    assert not made.startswith((".", "-"))
    assert made.isprintable()
    assert not set(made) & set("/\\ ;$`'\"<>|&*?~:%")
    assert version_in(made, name) == version


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("translator.py", "translator_v1_2.py"),
        ("translator_v1_1.py", "translator_v1_2.py"),
        ("translator_v1.py", "translator_v1_v1_2.py"),
        ("übersetzer.py", "übersetzer_v1_2.py"),
        ("run", "run_v1_2"),
        ("tool.v2.sh", "tool.v2_v1_2.sh"),
    ],
)
def test_ordinary_names_stay_as_they_are(script: str, name: str) -> None:
    assert versioned_name(script, VersionNumber(1, 2)) == name


@pytest.mark.parametrize("kind", ["file", "link", "broken link", "folder"])
def test_nothing_is_ever_overwritten(tmp_path: Path, kind: str) -> None:
    """Not through a link either."""
    script, victim, taken = (tmp_path / each for each in ("shout.py", "victim", "shout_v1_1.py"))
    script.write_text("print(1)")
    if kind == "folder":
        taken.mkdir()
    elif "link" in kind:
        taken.symlink_to(victim)
    if kind in ("file", "link"):
        taken.write_text("old")
    with pytest.raises(FileExistsError):
        create_beside(script, VersionNumber(1, 1), "new")
    assert not taken.is_file() or taken.read_text() == "old"
    assert victim.exists() == (kind == "link")


def test_a_version_has_the_mode_of_its_script(tmp_path: Path) -> None:
    """A script that can be started stays one; set-uid is not passed on."""
    script = tmp_path / "shout.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o4755)
    made = create_beside(script, VersionNumber(1, 1), "#!/bin/sh\nexit 0\n")
    assert made.stat().st_mode & 0o7777 == 0o755


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a tool, and links within it and out of it."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for path in (root / "tools" / "shout.py", outside / "secret.py"):
        path.parent.mkdir(parents=True)
        path.touch()
    for link, target in {
        "tools/alias.py": "shout.py", "tools/leak.py": outside / "secret.py",
        "elsewhere": outside, "linked": "tools",
    }.items():  # fmt: skip
        (root / link).symlink_to(target)
    return root


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("tools/shout.py", None), ("linked/shout.py", None), ("tools/alias.py", None),
        ("tools/leak.py", "lies outside"), ("elsewhere/secret.py", "lies outside"),
        ("tools/../../outside/secret.py", "lies outside"), ("tools/none.py", "is no file"),
        ("tools", "is no file"),
    ],
)  # fmt: skip
def test_a_script_must_be_a_file_below_the_promotions(
    root: Path, path: str, said: str | None
) -> None:
    """A link may lead to it, and the folder may be a link; nothing leads out."""
    if said is None:
        assert resolve_script(root / path, root) == (root / "tools" / "shout.py").resolve()
        return
    with pytest.raises(ConfigurationError, match=said):
        resolve_script(root / path, root)


def test_half_a_line_swallows_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is killed while another waits for its lock: that begins behind what it left."""
    path, lock = tmp_path / "log.jsonl", fcntl.flock

    def waits(descriptor: int, operation: int) -> None:
        lock(descriptor, operation)
        if operation == fcntl.LOCK_EX:
            path.write_bytes(b'{"at": "2026-02-')

    monkeypatch.setattr(fcntl, "flock", waits)
    append_line(path, b"{}\n")
    assert path.read_bytes().splitlines() == [b'{"at": "2026-02-', b"{}"]
