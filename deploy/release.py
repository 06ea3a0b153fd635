"""Build a release into `dist/`, and try it where nothing else is installed: `make release`.

    python deploy/release.py [--set VERSION] [--out dist]

Builds the wheels of the SDK and of the service, looks into them, installs them with the pinned
versions of `constraints.txt` into an environment of their own, runs the first commands there, and
writes a list of parts (CycloneDX) and the wheels' checksums next to them. Nothing is uploaded.
`--set` writes another version into every file that names it, and builds nothing.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN_NAMES = ("aftercall", "embeddings", "ingest", "mongo", "retrieval", "service")
"""Top-level packages of the wheels, as the README names them."""
NAMING = ("pyproject.toml", "sdk/pyproject.toml", "docker-compose.yml", "Dockerfile")
"""Files that name the version; `docs/operations.md` names it in the image's tag."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_PLACES = (
    re.compile(r'(?m)^(version = ")([^"]+)(")'),
    re.compile(r'(image\.version=")([^"]+)(")'),
    re.compile(r'("aftercall(?:\[[\w,-]+\])?==)([^"]+)(")'),
    re.compile(r"(aftercall:)(\d[\w.]*)()"),
)
COMMANDS = (("--version",), ("settings",), ("demo",))
"""What a newcomer runs first, in the environment that holds the wheels alone."""


class ReleaseError(Exception):
    """Something of the release is not as it has to be; the message names what and where."""


def versions_named(root: Path) -> dict[str, set[str]]:
    """Return the versions of Aftercall that each file names; one version where all is well."""
    files = (*NAMING, "docs/operations.md")
    return {file: {found for _, found in _named(root / file)} for file in files}


def _named(file: Path) -> Iterator[tuple[re.Pattern[str], str]]:
    text = file.read_text(encoding="utf-8")
    for place in _PLACES:
        for match in place.finditer(text):
            yield place, match[2]


def version_of(root: Path) -> str:
    """Return the version that `sdk/pyproject.toml` states.

    Raises:
        ReleaseError: another file names another version.
    """
    project = tomllib.loads((root / "sdk/pyproject.toml").read_text(encoding="utf-8"))["project"]
    version: str = project["version"]
    for file, named in versions_named(root).items():
        if other := named - {version}:
            raise ReleaseError(
                f"{file} names {', '.join(sorted(other))}, sdk/pyproject.toml {version}; "
                "run `python deploy/release.py --set VERSION`"
            )
    return version


def set_version(root: Path, version: str) -> None:
    """Write a version into every place that names it.

    Raises:
        ReleaseError: it is no version such as 0.2.0 or 0.2.0rc1.
    """
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version; write one such as 0.2.0 or 0.2.0rc1")
    for file in (*NAMING, "docs/operations.md"):
        path = root / file
        text = path.read_text(encoding="utf-8")
        for place in _PLACES:
            text = place.sub(rf"\g<1>{version}\g<3>", text)
        path.write_text(text, encoding="utf-8")


def top_level_names(wheel: Path) -> set[str]:
    """Return the names that a wheel puts into site-packages, its metadata left out."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
    return {name for name in names if not name.endswith((".dist-info", ".data"))}


def check_names(wheels: Sequence[Path], readme: str) -> None:
    """Check that the wheels hold our packages only, and that the README names each of them.

    Raises:
        ReleaseError: a name is another one, or the README does not name it.
    """
    held: set[str] = set().union(*map(top_level_names, wheels))
    if held != set(OWN_NAMES):
        odd = ", ".join(sorted(held ^ set(OWN_NAMES)))
        raise ReleaseError(f"the wheels' top-level names and OWN_NAMES differ by {odd}")
    if unnamed := [name for name in OWN_NAMES if f"`{name}`" not in readme]:
        raise ReleaseError(f"README.md does not name the top-level package {unnamed[0]}")


_SHARED = """
import sys
from importlib.metadata import packages_distributions
for name, owners in packages_distributions().items():
    if name in sys.argv[1:] and len(set(owners)) > 1:
        sys.exit(f"{name} is of {' and of '.join(sorted(set(owners)))}")
"""


def _run(*command: str | Path, cwd: Path | None = None, shown: bool = False) -> None:
    print(
        "$",
        " ".join(
            Path(part).name if index == 0 else str(part) for index, part in enumerate(command)
        ),
    )
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=not shown, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(
            f"{command[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )


def build(root: Path, out: Path) -> list[Path]:
    """Build both wheels into a folder and return their paths; older wheels in it are removed."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("aftercall*"):
        old.unlink()
    for project in (root / "sdk", root):
        _run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, project)
    return sorted(out.glob("aftercall*.whl"))


def try_out(root: Path, wheels: Sequence[Path], folder: Path) -> Path:
    """Install wheels into an environment in `folder`, run the first commands; return its Python."""
    _run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    sdk = next(wheel for wheel in wheels if wheel.name.startswith("aftercall-"))
    service = next(wheel for wheel in wheels if wheel.name.startswith("aftercall_service-"))
    _run(
        python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
        "-c", root / "constraints.txt", f"{sdk}[gateway]", f"{service}[demo]",
    )  # fmt: skip
    _run(python, "-c", _SHARED, *OWN_NAMES)
    for command in COMMANDS:
        _run(folder / "bin" / "aftercall", *command, cwd=folder)  # not where the sources lie
    return python


def list_parts(python: Path, file: Path, folder: Path) -> None:
    """Write the list of parts of an environment (CycloneDX, JSON) into a file."""
    _run(sys.executable, "-m", "venv", folder)
    _run(folder / "bin/python", "-m", "pip", "install", "-q", "cyclonedx-bom>=7")
    _run(folder / "bin/cyclonedx-py", "environment", python, "-o", file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, try and describe a release; return the exit code, 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--set", metavar="VERSION", help="write this version and build nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder (dist)")
    asked = parser.parse_args(arguments)
    try:
        if asked.set:
            set_version(ROOT, asked.set)
            print(f"The version is {version_of(ROOT)} everywhere.")
            return 0
        version = version_of(ROOT)
        wheels = build(ROOT, asked.out)
        check_names(wheels, (ROOT / "README.md").read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory(prefix="aftercall-release-") as folder:
            python = try_out(ROOT, wheels, Path(folder) / "clean")
            parts = asked.out / f"aftercall-{version}.cdx.json"
            list_parts(python, parts, Path(folder) / "tool")
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    made = [*wheels, parts]
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made]
    (asked.out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    print(
        f"Aftercall {version}: {', '.join(file.name for file in made)}, SHA256SUMS in {asked.out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
