"""The page of the laws, as Markdown and as JSON, and broken cases in readable form."""

import json
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.quality.laws.asking import Reply
from bench.quality.laws.runner import Broken, LawResult
from bench.quality.trial import Json

_CUT = 400


def markdown(results: Sequence[LawResult], command: str, skipped: Sequence[str]) -> str:
    """Return the page `docs/figures/laws.md`."""
    now = datetime.now(UTC)
    lines = [
        "# Laws",
        "",
        f"{now:%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}. Made by "
        f"`{command}`; everything counted is in `laws.json`. A law relates the answer about a case "
        "to the answer about a changed case, so that it needs no expected value. Seeds are fixed.",
        "",
        "| law | | compared | broken |",
        "|---|---|---:|---:|",
        *(f"| {each.law.name} | {each.law.claim} | {each.count:,} | {each.broken:,} |"
          for each in results),
    ]  # fmt: skip
    for result in results:
        lines += ["", f"## {result.law.name}", "", *_kinds(result)]
        smallest = min(
            (each.smallest[0] for each in result.tallies.values() if each.smallest),
            key=lambda each: each.size,
            default=None,
        )
        if smallest is not None:
            lines += ["", "The smallest case that breaks it:", "", *readable(smallest)]
        if result.stopped:
            lines += ["", f"Stopped after {result.seconds:.0f} s."]
    if skipped:
        lines += ["", "## Not measured here", "", *(f"- {each}" for each in skipped)]
    return "\n".join(lines) + "\n"


def _kinds(result: LawResult) -> Iterator[str]:
    yield "| change | compared | broken | why, most often |"
    yield "|---|---:|---:|---|"
    for kind, tally in sorted(result.tallies.items()):
        ranked = sorted(tally.reasons.items(), key=lambda each: -each[1])
        why = "; ".join(f"{reason} ({count})" for reason, count in ranked[:3])
        yield f"| {kind} | {tally.count:,} | {tally.broken:,} | {why.replace('|', '/')} |"


def readable(broken: Broken) -> Iterator[str]:
    """Yield the lines that show a broken case: what was asked, and both answers."""
    base, changed = broken.base, broken.changed
    yield f"- **{broken.why}**; {base.case.source} `{base.case.name}`, tool `{base.case.tool}`"
    yield from _shown("base", base)
    if changed.case is not base.case:
        yield from _shown("changed", changed)


def _shown(name: str, reply: Reply) -> Iterator[str]:
    case = reply.case
    schema = None if case.schema is None else case.schema.get("properties", case.schema)
    yield f"  - {name}: call `{_short(case.call)}`"
    yield f"    - error `{_short(case.error)}`"
    yield f"    - schema `{_short(schema)}`, taught {len(case.history)} executions"
    yield f"    - answer `{_short(reply.as_json(), 900)}`"


def _short(value: object, most: int = _CUT) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("`", "'")
    return text if len(text) <= most else f"{text[:most]} ..."


def as_json(results: Sequence[LawResult]) -> Json:
    """Return all counts, with the smallest broken case of each way."""
    return {
        each.law.name: {
            "compared": each.count, "broken": each.broken, "stopped": each.stopped,
            "kinds": {
                kind: {
                    "compared": tally.count, "broken": tally.broken, "reasons": tally.reasons,
                    "smallest": [_case_as_json(found) for found in tally.smallest],
                }
                for kind, tally in sorted(each.tallies.items())
            },
        }
        for each in results
    }  # fmt: skip


def _case_as_json(broken: Broken) -> Json:
    case = broken.changed.case
    return {
        "why": broken.why, "source": case.source, "case": case.name, "tool": case.tool,
        "call": case.call, "error": case.error, "schema": case.schema,
        "taught": len(case.history), "base": broken.base.as_json(),
        "changed": broken.changed.as_json(),
    }  # fmt: skip


def write(results: Sequence[LawResult], folder: Path, command: str, skipped: Sequence[str]) -> str:
    """Write `laws.md` and `laws.json`; return the page."""
    page = markdown(results, command, skipped)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "laws.md").write_text(page, encoding="utf-8")
    text = json.dumps(as_json(results), indent=1, ensure_ascii=False)
    (folder / "laws.json").write_text(f"{text}\n", encoding="utf-8")
    return page
