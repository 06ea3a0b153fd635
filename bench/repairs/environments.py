"""The entries of `entries.toml`: each in an environment of its own below `.bench/repairs/`."""

import hashlib
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".bench" / "repairs"
_FOLDER = Path(__file__).parent
_NODE = frozenset({".cjs", ".mjs", ".js"})


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry: how it is installed and started, and a note about it."""

    name: str
    program: str
    about: str = ""
    options: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()

    @property
    def versions(self) -> str:
        """The packages with their versions, as `pip` or `npm` name them."""
        return ", ".join((*self.pip, *self.npm))

    @property
    def command(self) -> list[str]:
        """The words that start it, once it is installed."""
        program = _FOLDER / "entries" / self.program
        if program.suffix in _NODE:
            return ["node", str(program), *self.options]
        python = HOME / self._folder / "bin" / "python" if self.pip else sys.executable
        return [str(python), str(program), *self.options]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it runs with: the project's modules for a program of the project."""
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if self.npm:
            return clean | {"NODE_PATH": str(HOME / self._folder / "node_modules")}
        return clean if self.pip else clean | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'sdk'}"}

    def install(self) -> None:
        """Install what it needs, unless that is done.

        Raises:
            subprocess.CalledProcessError: pip or npm failed; what they said is printed.
        """
        folder = HOME / self._folder
        done = folder / f"installed-{hashlib.sha256(self.versions.encode()).hexdigest()[:12]}"
        if done.exists() or not self.versions:
            return
        print(f"installing {self.versions}", file=sys.stderr, flush=True)
        if self.pip:
            install_with_pip(folder, self.pip)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--silent", "--no-fund", "--prefix", str(folder)]
            subprocess.run([*command, *self.npm], check=True)
        done.touch()

    @property
    def _folder(self) -> str:
        return Path(self.program).stem


def install_with_pip(folder: Path, packages: Sequence[str]) -> None:
    """Make a virtual environment with these packages in a folder."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", *packages], check=True)


def read_entries(file: Path = _FOLDER / "entries.toml") -> list[Entry]:
    """Return the entries of a file, in its order."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["entry"]
    return [Entry(**{name: tuple(value) if isinstance(value, list) else value
                     for name, value in row.items()}) for row in rows]  # fmt: skip
