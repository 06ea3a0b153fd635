"""Files of other makers: are calls and failures read as a person counts them?

    python -m bench.files FOLDER [--write]

`bench/files.toml` names the files, of public repositories, with what is in them by hand. Their
texts are not ours to ship: FOLDER holds copies under the names of the tables. Each is imported with
`aftercall import --dry-run`, whatever its age. With `--write` the table goes to
`docs/figures/files.md`.
"""

import argparse
import contextlib
import io
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aftercall.cli import main as aftercall
from bench.figures import FOLDER, made_by

_MANIFEST = Path(__file__).with_suffix(".toml")
_COUNTS = re.compile(r"([\d,]+) of ([\d,]+) calls failed$", re.MULTILINE)
_COMMAND = "python -m bench.files FOLDER --write"
_INTRODUCTION = """Logs, rollouts, traces and dumps of conversations from public repositories, read
with `aftercall import --dry-run` and compared with calls and failures that were counted by hand
before they were imported. Their texts are not ours to ship, so the files are named and not kept
here; whoever renews the table puts copies into a folder, under the names in `bench/files.toml`.
Copies were made by hand, from what an index of public repositories shows; most had long texts or
boilerplate cut (*cut*), a few are the first lines alone (*part*), the rest are whole; structure,
ids and marks are as they were. What was read exactly before the readers were mended after these
files is *at first sight*; those of rounds 2 and 3 were fetched after the mends of the rounds
before. Many hold no call, and the right answer is none: rows of the summary leave them out. What is
not exact: mini-swe-agent 1 writes commands as Markdown in a message, which no reader takes for
calls; and arguments that are no JSON are kept as a failed call, by our rule, whatever the file says
of the result.
"""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the manifest, with what was counted by hand."""

    name: str
    repository: str
    path: str
    commit: str
    form: str
    copy: str
    calls: int
    failures: int
    first: bool
    round: int


def read_manifest() -> list[File]:
    """Return the files that `files.toml` names, in its order."""
    table = tomllib.loads(_MANIFEST.read_text(encoding="utf-8"))
    return [File(name, **fields) for name, fields in table.items()]


def read_counts(path: Path) -> tuple[int, int]:
    """Return calls and failures that a dry run of the import finds in a file or a folder."""
    said = io.StringIO()
    with (
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        contextlib.suppress(SystemExit),
    ):
        aftercall(["import", "--dry-run", str(path)])
    found = _COUNTS.findall(said.getvalue())
    failures, calls = (int(each.replace(",", "")) for each in found[-1])
    return calls, failures


def table_of(read: Sequence[tuple[File, tuple[int, int]]]) -> Iterator[str]:
    """Return the lines of the page's tables: a summary, then a row a file."""
    yield "| | files | exact at first sight | exact now | share |"
    yield "|---|---|---|---|---|"
    groups = {
        "all (asked: .95 of at least 30)": read,
        "rounds 2 and 3, unseen by the mends before": [each for each in read if each[0].round > 1],
        "with a call in them": [each for each in read if each[0].calls],
        "rounds 2 and 3, with a call in them": [
            each for each in read if each[0].round > 1 and each[0].calls
        ],
    }
    for title, files in groups.items():
        first = sum(file.first for file, _ in files)
        exact = sum(_is_exact(file, counts) for file, counts in files)
        yield f"| {title} | {len(files)} | {first} | {exact} | {exact / len(files):.3f} |"
    repositories = {file.repository for file, _ in read}
    calls, failures = (sum(file.calls for file, _ in read), sum(file.failures for file, _ in read))
    yield ""
    yield f"{len(repositories)} repositories, {calls} calls, {failures} failures."
    yield ""
    yield "| repository | path | commit | form | copy | calls, failures by hand | read |"
    yield "|---|---|---|---|---|---|---|"
    for file, counts in read:
        shown = f"{counts[0]}, {counts[1]}"
        yield (
            f"| {file.repository} | `{file.path}` | {file.commit[:12]} | {file.form} | "
            f"{file.copy} | {file.calls}, {file.failures} | "
            f"{shown if _is_exact(file, counts) else f'**{shown}**'} |"
        )


def _is_exact(file: File, counts: tuple[int, int]) -> bool:
    return counts == (file.calls, file.failures)


def main() -> None:
    """Read the files of a folder, print the table, and write the page on demand."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write docs/figures/files.md")
    arguments = parser.parse_args()
    os.environ["AFTERCALL_RETENTION_DAYS"] = "0"
    files = read_manifest()
    missing = [file.name for file in files if not (arguments.folder / file.name).exists()]
    if missing and arguments.write:
        sys.exit(f"{len(missing)} files are missing in {arguments.folder}: {', '.join(missing)}")
    read = [
        (file, read_counts(arguments.folder / file.name))
        for file in files
        if file.name not in missing
    ]
    lines = "\n".join(table_of(read))
    print(lines)
    if arguments.write:
        page = f"# Files of other makers\n\n{made_by(_COMMAND)}\n\n{_INTRODUCTION}\n{lines}\n"
        (FOLDER / "files.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
