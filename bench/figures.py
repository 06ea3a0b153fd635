"""The pages of `docs/figures/`: each names the day it was made and the command that makes it.

A page that one command writes has them below its title, a page of several below each heading.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
MADE = re.compile(r"^\d{4}-\d{2}-\d{2}[.,]")
"""How the line begins that holds the day."""
_HEADING = "\n## "


def made_by(command: str) -> str:
    """Return the line of something that is made today by a command."""
    return f"{datetime.now(UTC):%Y-%m-%d}. Made by `{command}`."


@contextmanager
def stamped(command: str, folder: Path = FOLDER) -> Iterator[None]:
    """Put that line below the title of each page that is written inside of this.

    A page that has a line of its own there, or is made of sections, is left as it is.
    """
    before = {page: page.read_bytes() for page in folder.glob("*.md")}
    yield
    for page in folder.glob("*.md"):
        if page.read_bytes() == before.get(page):
            continue
        title, _, rest = page.read_text(encoding="utf-8").partition("\n")
        if not MADE.search(rest.lstrip("\n")) and not _is_of_sections(rest):
            page.write_text(f"{title}\n\n{made_by(command)}\n{rest}", encoding="utf-8")


def write_section(page: Path, title: str, command: str, body: str) -> None:
    """Replace the section of this title, or add it at the end, made today by a command.

    Args:
        page: the file; a new one gets its name as its title.
        title: of the section, without `## `.
        command: what makes it.
        body: Markdown without a heading of the second level.
    """
    before = page.read_text(encoding="utf-8") if page.exists() else f"# {page.stem.capitalize()}"
    head, *sections = before.rstrip().split(_HEADING)
    kept = {each.partition("\n")[0]: f"{each.rstrip()}\n" for each in sections}
    kept[title] = f"{title}\n\n{made_by(command)}\n\n{body.strip()}\n"
    page.write_text(_HEADING.join([f"{head.rstrip()}\n", *kept.values()]), encoding="utf-8")


def write_marked(page: Path, mark: str, body: str) -> None:
    """Replace what stands between `<!-- mark -->` and `<!-- /mark -->` in a page.

    Raises:
        ValueError: the page has no such marks.
    """
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if begin not in text or end not in text.partition(begin)[2]:
        raise ValueError(f"{page} has no {begin} ... {end}")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}\n{body.strip()}\n{end}{after}", encoding="utf-8")


def _is_of_sections(text: str) -> bool:
    """Return whether a section says itself when it was made."""
    return any(
        MADE.search(each.partition("\n")[2].lstrip("\n")) for each in text.split(_HEADING)[1:]
    )
