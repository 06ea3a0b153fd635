"""First suggestions about errors in the words of real validators, and of the field.

    python -m bench.quality --only dialects
    python -m bench.quality --only field
    python -m bench.quality --only validators world
    python -m bench.quality.dialects [--show] [--held] [--write] [NAME ...]

Each row of `../shared/data/dialects/*.jsonl` is a wrong call, the error that a real library printed
about it, and all right calls. The memory is empty. Each row is asked about twice: with the schema
that the server advertises, and without any. *Right* is a first suggestion whose corrected call, as
the SDK sends it, is one of the right ones; *wrong* is any other; *silent* is none. Where nobody can
know the right call, a change at .5 or more is *made up*.

`world.jsonl`, next to this file, holds errors of a hundred libraries, frameworks and services with
tools of their own, and traps. `validators.jsonl` holds a further set: two tools with their wrong
calls, and what further libraries print about them. A line is a tool or a library form; `errors` has
the text by the number of the case.

Development looks at failing rows of three of four library forms. The fourth part (`is_held`, by a
hash of the form's name) is only measured, though its rows were read once before the table was
written.
"""

import argparse
import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftercall.models import FailedCall, Suggestion
from aftercall.reflection.corrected_call import CorrectionError, correct_call
from aftercall.tables import gather_values
from bench import data
from bench.quality.brain import Brain, Json, open_brain
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder
from retrieval import read_word_table
from retrieval.knowledge.values.scalars import same_value

ECOSYSTEMS = ("rust", "go", "js", "jvm")
FIELD = ("mcp", "frameworks")
SURE = 0.8
MADE_UP = 0.5
_PART_HELD = 4
_MCP_SERVERS = (
    "rust-rmcp", "go-sdk", "mcp-go", "mcp-go-default", "mcp-zod3", "mcp-zod4", "mcp-lowlevel",
    "fastmcp-ts", "jvm-mcp-sdk", "jvm-spring-ai", "jvm-langchain4j",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A wrong call with its error and all right calls; `group` is the file, `form` the library."""

    id: str
    group: str
    form: str
    kind: str
    tool: str
    call: Any
    error: Json
    schema: Json | None
    gold: Sequence[Any]
    library: str = ""
    """The library with its version, as the data name it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was suggested first about a row; `call` is None where nothing was."""

    row: Row
    call: Any = None
    confidence: float = 0.0
    followed: bool = False
    said: str = ""

    @property
    def verdict(self) -> str:
        """`right`, `wrong` or `silent`; of a row without a right call `made up` or `kept`."""
        if not self.row.gold:
            is_change = self.call is not None and self.call != self.row.call
            is_made_up = is_change and self.confidence >= MADE_UP
            return "made up" if is_made_up else "kept"
        if self.call is None:
            return "silent"
        is_right = any(same_value(self.call, each) for each in self.row.gold)
        return "right" if is_right else "wrong"


def is_held(form: str) -> bool:
    """Return whether a library form is of the part that is only measured."""
    digest = hashlib.sha256(form.encode()).digest()
    return digest[0] % _PART_HELD == 0


def dialects() -> Iterator[Row]:
    """Yield the rows of real libraries."""
    for group in ECOSYSTEMS:
        for line in _lines(f"dialects/{group}.jsonl"):
            yield Row(
                line["id"], group, line["id"].split("/")[0], line["kind"], line["tool"],
                line["call"], _as_error(line["error"]), line["schema"], line["gold"],
                line["library"],
            )  # fmt: skip


def field() -> Iterator[Row]:
    """Yield the rows of public bug reports."""
    for group in FIELD:
        for line in _lines(f"field/{group}.jsonl"):
            error = {name: value for name, value in line["error"].items() if value is not None}
            yield Row(
                line["id"], group, group, line["kind"], line["tool"], line["call"], error,
                line["schema"], line["gold"],
            )  # fmt: skip


def validators() -> Iterator[Row]:
    """Yield the rows of further libraries, which were measured before a sentence was written."""
    lines = list(_lines_of(_VALIDATORS))
    tools = {line["tool"]: line for line in lines if "cases" in line}
    for line in lines:
        tool = tools[line["tool"]]
        for number, text in line.get("errors", {}).items():
            case = tool["cases"][int(number)]
            yield Row(
                f"{line['form']}/{number}", "further", line["form"], case["kind"],
                tool["tool"].removesuffix("_form"), case["call"], _as_error(text),
                tool["schema"], case["gold"], line["library"],
            )  # fmt: skip


def world() -> Iterator[Row]:
    """Yield errors of a hundred sources, written by somebody who did not know the code.

    The `worked` ones were looked at after they had been asked unseen; the `later` ones never were.
    """
    for line in _lines_of(_WORLD):
        part = line["id"].split("/")[0]
        yield Row(
            line["id"], part, line["source"], line["kind"], line["tool"], line["call"],
            _as_error(line["error"]), line["schema"], line["gold"], line["ecosystem"],
        )  # fmt: skip


_VALIDATORS = Path(__file__).with_name("validators.jsonl")
_WORLD = Path(__file__).with_name("world.jsonl")


def _lines(name: str) -> Iterator[Json]:
    yield from _lines_of(data.path(name))


def _lines_of(path: Path) -> Iterator[Json]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _as_error(said: Any) -> Json:
    """The error as a gateway sends it: JSON-RPC with its code, a body of HTTP as its text."""
    if isinstance(said, str):
        return {"type": "ToolError", "message": said}
    is_rpc = isinstance(said, dict) and said.keys() <= {"code", "message", "data"}
    if is_rpc and isinstance(said.get("code"), int):
        error: Json = {"type": "McpError", "code": str(said["code"]), "message": said["message"]}
        held = said.get("data")
        return error | ({"details": held} if isinstance(held, dict) else {})
    return {"type": "ToolError", "message": json.dumps(said, ensure_ascii=False)}


async def _ask(brain: Brain, row: Row, *, with_schema: bool) -> Found:
    fields = {
        "agent": "tester", "tool_name": row.tool, "server_name": row.form, "parameters": row.call,
        "error": row.error, "input_schema": row.schema if with_schema else None,
    }  # fmt: skip
    try:
        call = FailedCall.model_validate(fields)
    except ValueError:
        return Found(row, said="the wire refuses it")
    answer = await brain.ask(call)
    first = next(iter(answer.suggestions), None)
    if first is None or first.corrected_parameters is None:
        return Found(row, said=answer.reason or "")
    corrected = _sent(row.call, first)
    followed = bool(first.safe) and first.confidence > SURE
    return Found(row, corrected, first.confidence, followed, first.lesson)


def _sent(call: Any, suggestion: Suggestion) -> Any:
    """Return what a client sends: its own values stand behind the masks of the service."""
    if not isinstance(call, dict):
        return suggestion.corrected_parameters
    try:
        return correct_call(call, suggestion.changes)
    except CorrectionError:
        return suggestion.corrected_parameters


async def ask_all(embedder: Embedder, rows: Iterable[Row], *, with_schema: bool) -> list[Found]:
    """Ask an empty memory about all rows; the order does not matter."""
    async with open_brain(embedder) as brain:
        return [await _ask(brain, row, with_schema=with_schema) for row in rows]


def _shares(title: str, found: Sequence[Found]) -> str:
    counts = Counter(each.verdict for each in found)
    golden = sum(counts[each] for each in ("right", "wrong", "silent"))
    sure = sum(each.confidence >= SURE for each in found)
    sure_wrong = sum(
        each.confidence >= SURE and each.verdict in ("wrong", "made up") for each in found
    )
    followed_wrong = sum(each.followed and each.verdict in ("wrong", "made up") for each in found)
    share = counts["right"] / golden if golden else 0.0
    return (
        f"{title:28} right {counts['right']:3} of {golden:3} ({share:.2f})  "
        f"wrong {counts['wrong']:2}  silent {counts['silent']:3}  "
        f"made up {counts['made up']:2} of {len(found) - golden:2}  "
        f"sure {sure:3}  sure and wrong {sure_wrong}  followed and wrong {followed_wrong}"
    )


def _by(found: Sequence[Found], key: Callable[[Row], str]) -> Iterator[str]:
    for name in dict.fromkeys(key(each.row) for each in found):
        yield _shares(name, [each for each in found if key(each.row) == name])


def _unread(found: Sequence[Found]) -> str:
    forms = {each.row.form for each in found if each.row.gold}
    read = {each.row.form for each in found if each.verdict == "right"}
    missing = sorted(forms - read)
    return f"nothing is read right of {len(missing)} of {len(forms)} forms: {', '.join(missing)}"


def page(found: Sequence[Found], *, title: str) -> str:
    """Return the figures of one way of asking, by group, kind and library."""
    servers = [each for each in found if each.row.form in _MCP_SERVERS]
    held = [each for each in found if is_held(each.row.form)]
    parts = [f"# {title}", _shares("all", found)]
    if servers:
        parts += [_shares("MCP servers", servers), _shares("held out", held)]
    parts += [*_by(found, lambda row: row.group), *_by(found, lambda row: row.kind)]
    if any(each.row.form != each.row.group for each in found):
        parts += [*_by(found, lambda row: row.form), _unread(found)]
    return "\n".join(parts)


_ABOUT = """# Dialects: whose errors are read

Made by `python -m bench.quality.dialects --write`. What validators and SDKs say of a wrong call is
read with the tool's schema and without any. The tables count rows of the data that lie next to the
project (`dialects/`) and of `bench/quality/validators.jsonl`, asked at an empty memory. Before
a sentence was written for the latter, 459 of their 473 rows with a right call were right with the
schema and 126 without. Of forms that are *kept apart* the rows were read once, when the table was
written; no failing one was looked at again.
"""
_ADDING = """## Add a dialect

1. Add a row to `reading/dialects.toml` under `[[forms]]`: the pattern, what it tells
   (`fault`), a lower-case cue, and under `example` the real sentence that it is for, with `reads`
   as what is to be read from it.
2. If the text writes places in a way of its own, add a row under `[[places]]`.
3. Run `pytest tests/retrieval/test_dialects.py`. The example is the test; no code changes.
"""


def document(with_schema: Sequence[Found], without: Sequence[Found]) -> str:
    """Return the page `docs/dialects.md`."""
    head = "| library | rows with a right call | right with schema | right without | kept apart |"
    lines = [_ABOUT, "## Libraries", "", head, "|---|---:|---:|---:|---|"]
    pairs = gather_values(
        (each.row.library, (each, other)) for each, other in zip(with_schema, without, strict=True)
    )
    for library, both in sorted(pairs.items()):
        golden = [pair for pair in both if pair[0].row.gold]
        right = [
            sum(each.verdict == "right" for each in column) for column in zip(*golden, strict=True)
        ]
        counts = f"{len(golden)} | {' | '.join(map(str, right or [0, 0]))}"
        first = both[0][0].row
        held = "yes" if first.group in ECOSYSTEMS and is_held(first.form) else ""
        lines.append(f"| {library} | {counts} | {held} |")
    lines += ["", "## Sentences", "", "| dialect | fault | example |", "|---|---|---|"]
    for form in read_word_table("knowledge/reading/dialects.toml")["forms"]:
        example = " ".join(form["example"].split()).replace("|", "\\|").replace("`", "'")
        lines.append(f"| {form['dialect']} | {form['fault']} | `{example[:_EXAMPLE]}` |")
    return "\n".join([*lines, "", _ADDING])


_EXAMPLE = 160
_PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"


def _shown(found: Found) -> str:
    row = found.row
    return "\n".join((
        f"## {row.id} | {row.kind} | {found.verdict} at {found.confidence:.2f}",
        f"  call  {json.dumps(row.call, ensure_ascii=False)[:600]}",
        f"  error {json.dumps(row.error, ensure_ascii=False)[:600]}",
        f"  gold  {json.dumps(row.gold, ensure_ascii=False)[:600]}",
        f"  found {json.dumps(found.call, ensure_ascii=False)[:600]}",
        f"  said  {found.said}",
    ))  # fmt: skip


async def measure(embedder: Embedder, rows: Sequence[Row]) -> None:
    """Print the figures of both ways of asking."""
    for with_schema in (True, False):
        found = await ask_all(embedder, rows, with_schema=with_schema)
        title = "with the advertised schema" if with_schema else "without a schema"
        print(page(found, title=title), flush=True)


async def _show(options: argparse.Namespace) -> None:
    rows = [*dialects(), *field(), *validators()]
    names = options.names or list(ECOSYSTEMS)
    chosen = [row for row in rows if {row.id, row.form, row.group, row.kind} & {*names}]
    if not options.held:
        chosen = [row for row in chosen if row.group not in ECOSYSTEMS or not is_held(row.form)]
    embedder = await open_embedder()
    try:
        if options.write:
            every = [*dialects(), *validators()]
            both = [await ask_all(embedder, every, with_schema=each) for each in (True, False)]
            _PAGE.write_text(document(*both), encoding="utf-8")
            return
        for with_schema in (True, False):
            found = await ask_all(embedder, chosen, with_schema=with_schema)
            print(page(found, title="with" if with_schema else "without"))
            if options.show:
                bad = [each for each in found if each.verdict not in ("right", "kept")]
                print("\n".join(_shown(each) for each in bad))
    finally:
        await embedder.close()


def main() -> None:
    """Print the figures of some rows and, with `--show`, those that are not right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="ecosystems, library forms, kinds or ids")
    parser.add_argument("--show", action="store_true", help="print the rows that are not right")
    parser.add_argument("--write", action="store_true", help="write docs/dialects.md")
    parser.add_argument("--held", action="store_true", help="also the part that is held out")
    asyncio.run(_show(parser.parse_args()))


if __name__ == "__main__":
    main()
