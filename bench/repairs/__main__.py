"""Measure who repairs failed tool calls, and how often that goes wrong.

    python -m bench.repairs [--entry NAME ...] [--set NAME ...] [--show N] [--write]
    python -m bench.repairs --command "python my_entry.py"
    python -m bench.repairs --url http://127.0.0.1:8080/repair

Without `--command` or `--url` the entries of `entries.toml` are installed, each into an environment
of its own below `.bench/repairs/`, and asked. `--write` renews their section of
`docs/figures/peers.md`. `--questions` prints what an entry is asked, as JSON lines, and asks none.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bench.figures import FOLDER, write_section
from bench.repairs.cases import SETS, Case, with_good_calls
from bench.repairs.environments import ROOT, Entry, read_entries
from bench.repairs.judge import Answer, judge
from bench.repairs.runner import EntryError, ask_command, ask_url
from bench.repairs.table import Judged, count, table

TITLE = "Who repairs failed calls"
_ABOUT = {
    "written": "Wrong calls to some two hundred tools, written one by one. They are part of this "
    "project, and other parts of it were fitted on the earlier sets of them.",
    "field": "Failed calls of public bug reports. Aftercall was developed with this set in sight.",
    "learned": "Forms of change that two agents fixed before; the third one has other values. "
    "Aftercall was developed with this set in sight.",
}
_READING = (
    "*Right*: the call is the same JSON as one of the right calls; nothing is executed. *Wrong*: "
    "it was changed into another one; *silently*: that one is taken by the schema, and the entry "
    "itself would send it with nobody asked. Where no right call exists, every change is wrong. "
    "*Good calls* are what was meant, shown before they are made. Every entry sees schema, call "
    "and error. Cases and judge are the project's own: `bench/repairs/README.md` says how to enter."
)
Ask = Callable[[Sequence[dict[str, Any]]], list[Answer]]


def measure(ask: Ask, cases: Sequence[Case]) -> Judged:
    """Ask an entry about all cases, and judge its answers."""
    answers = ask([case.question for case in cases])
    return [(case, judge(case, answer)) for case, answer in zip(cases, answers, strict=True)]


def asker(entry: Entry) -> Ask:
    """Return what asks an entry, once it is installed."""
    entry.install()
    return lambda questions: ask_command(
        entry.command, questions, folder=ROOT, environment=entry.environment
    )


def show(name: str, judged: Judged, most: int) -> None:
    """Print the first questions whose answer is wrong, or a changed good call."""
    for case, verdict in [each for each in judged if each[1].kind == "wrong"][:most]:
        silently = "silently " if verdict.is_silent else ""
        print(f"{name}: {silently}wrong at {case.question['id']}")


def body(tables: dict[str, str], entries: Sequence[Entry]) -> str:
    """Return the section of the page: how to read it, a table a set, a note an entry."""
    notes = [f"- {each.name}{f' ({each.versions})' if each.versions else ''}: {each.about}."
             for each in entries]  # fmt: skip
    parts = [f"### {name}\n\n{_ABOUT[name]}\n\n{each}" for name, each in tables.items()]
    return "\n\n".join([_READING, *parts, "\n".join(notes)])


def main() -> None:
    """Ask, print the tables and, with `--write`, renew the page."""
    known = {each.name: each for each in read_entries()}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entry", nargs="*", choices=known, metavar="NAME", default=list(known))
    parser.add_argument("--set", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--command", help="ask this command only")
    parser.add_argument("--url", help="ask this URL only")
    parser.add_argument("--show", type=int, default=0, help="name so many wrong answers of a set")
    parser.add_argument("--questions", action="store_true", help="print the questions")
    parser.add_argument("--write", action="store_true", help="renew docs/figures/peers.md")
    options = parser.parse_args()
    if options.write and (options.command or options.url or len(options.entry) < len(known)
                          or len(options.set) < len(SETS)):  # fmt: skip
        parser.error("the page has all entries and sets: leave the other options out")
    sets: dict[str, list[Case]] = {}
    for name in options.set:
        try:
            sets[name] = list(with_good_calls(list(SETS[name]())))
        except FileNotFoundError as missing:
            print(missing, file=sys.stderr)
    if options.questions:
        for cases in sets.values():
            print("\n".join(json.dumps(case.question) for case in cases))
        return
    own: dict[str, Ask] = {}
    if options.command:
        own["your command"] = partial(ask_command, options.command)
    if options.url:
        own["your URL"] = partial(ask_url, options.url)
    try:
        asked = own or {name: asker(known[name]) for name in options.entry}
        tables = {name: measured(asked, cases, options.show) for name, cases in sets.items()}
    except EntryError as error:
        sys.exit(str(error))
    for name, text in tables.items():
        print(f"\n{name}\n{text}")
    if options.write:
        if len(tables) < len(SETS):
            sys.exit("the page is not renewed: a set is missing")
        text = body(tables, list(known.values()))
        write_section(FOLDER / "peers.md", TITLE, "python -m bench.repairs --write", text)


def measured(asked: dict[str, Ask], cases: Sequence[Case], most: int) -> str:
    """Return the table of one set."""
    counts = {}
    for name, ask in asked.items():
        print(f"  {name}", file=sys.stderr, flush=True)
        judged = measure(ask, cases)
        show(name, judged, most)
        counts[name] = count(judged)
    return table(counts)


if __name__ == "__main__":
    main()
