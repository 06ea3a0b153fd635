"""One version, wheels that hold our packages only, and units of systemd that start."""

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """`deploy/release.py`, which is a script."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "deploy" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_names_the_same_version(release: ModuleType) -> None:
    """Both packages, what they want of each other, the image and its label."""
    version = release.version_of(ROOT)
    assert all(named == {version} for named in release.versions_named(ROOT).values())


def test_another_version_is_written_everywhere(release: ModuleType, tmp_path: Path) -> None:
    """And one that is none is refused before anything is written."""
    for file in (*release.NAMING, "docs/operations.md"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    release.set_version(tmp_path, "0.2.0rc1")
    assert release.version_of(tmp_path) == "0.2.0rc1"
    with pytest.raises(release.ReleaseError, match="is no version"):
        release.set_version(tmp_path, "next")
    (tmp_path / "Dockerfile").write_text('version="0.3.0" aftercall:0.3.0', encoding="utf-8")
    with pytest.raises(release.ReleaseError, match="Dockerfile names"):
        release.version_of(tmp_path)


def test_a_foreign_name_in_a_wheel_is_refused(release: ModuleType, tmp_path: Path) -> None:
    """So is a package of ours that the README does not name."""
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*release.OWN_NAMES, "aftercall-1.dist-info"):
            archive.writestr(f"{name}/x", "")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    release.check_names([wheel], readme)
    with pytest.raises(release.ReleaseError, match="does not name"):
        release.check_names([wheel], readme.replace("`mongo`", "mongo"))
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tests/x", "")
    with pytest.raises(release.ReleaseError, match="tests"):
        release.check_names([wheel], readme)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_right_and_its_commands_are_there(unit: Path, tmp_path: Path) -> None:
    """By `systemd-analyze` where it is, but for the folder of the installation."""
    text = unit.read_text(encoding="utf-8")
    for command in re.findall(r"/bin/aftercall ([a-z]+(?: [a-z]+)?)", text):
        shown = subprocess.run(
            [Path(sys.executable).with_name("aftercall"), *command.split(), "--help"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert shown.returncode == 0, (command, shown.stderr)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not here")
    installed = str(Path(sys.executable).parent)
    for each in UNITS:
        moved = each.read_text(encoding="utf-8").replace("/opt/aftercall/bin", installed)
        (tmp_path / each.name).write_text(moved, encoding="utf-8")
    verdict = subprocess.run(
        [analyze, "verify", tmp_path / unit.name], capture_output=True, text=True, check=False
    )
    assert verdict.returncode == 0, verdict.stderr


@pytest.mark.prove
def test_what_was_built_works_where_nothing_else_is(tmp_path: Path) -> None:
    """`make release`: wheels in an environment of their own run the README's first commands."""
    done = subprocess.run(
        [sys.executable, ROOT / "deploy" / "release.py", "--out", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kinds = {file.suffix for file in tmp_path.iterdir()}
    assert {".whl", ".json"} <= kinds
