"""Recorded sessions of coding agents through the hooks: failures advised on, good calls left alone.

    python -m bench.hooks [--cost] [--limit N] [--write]

Replays `claude_code.traces` (9,743 calls of Claude Code, without results) in their order, as the
hooks of Claude Code would have told of them: each call before it is made, then how it ended. The
memory starts empty. Asked are advice or a repair that is right for half of the failing calls of
built-in tools, and no good call changed.

What is right is read from what the agent itself did next in its session, within ten calls: it read
the file that it was to read, or searched; it used the path, the option or the passage that it was
shown; it called the other tool; or its next call of the tool is the suggested one. A failure whose
like call worked later unchanged was no mistake of the call, and silence is right there. Calls that
the user refused are left out. `--cost` measures what a hook takes: by HTTP and by the command.
"""

import argparse
import asyncio
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from rapidfuzz import fuzz

from aftercall.json_patch import same_json
from bench import data
from bench.figures import made_by
from bench.service import serving
from service.context import Context, open_context
from service.hooks.advice import SessionAdvice
from service.hooks.clients import HookClient, read_client
from service.hooks.events import read_event
from service.hooks.handling import ChangedCalls, FailureAdvice, HookHandler
from service.hooks.shown import is_same_path, texts_at
from service.settings import DataSettings, EmbeddingSettings, RetentionSettings, Settings

TRACES = "claude_code.traces.jsonl.gz"
FIGURES = Path(__file__).parents[1] / "docs" / "figures" / "hooks.md"
WITHIN = 10
"""Calls of the session that are looked at for what the agent did next."""
_REFUSED = ("user_rejected",)
_LOOKS = ("Glob", "Grep", "LS", "Read")
_LOOKING = ("ls", "find", "grep", "rg", "pwd", "cat", "sed", "head", "git")
Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of a session, and its next ones."""

    row: Json
    next: Sequence[Json]

    @property
    def is_refused(self) -> bool:
        """Whether a person refused or stopped it."""
        error = self.row["error"] or {}
        words = error.get("message", "")
        return error.get("type") in _REFUSED or "interrupted by user" in words

    def worked_unchanged(self) -> bool:
        """Whether the same call worked later."""
        return any(
            each["outcome"] == "success"
            and each["tool"] == self.row["tool"]
            and same_json(_plain(each["parameters"]), _plain(self.row["parameters"]))
            for each in self.next
        )


def _plain(parameters: Json) -> Json:
    return {name: value for name, value in parameters.items() if name != "description"}


def sessions() -> list[list[Json]]:
    """The rows by session, in time order."""
    found: dict[str, list[Json]] = defaultdict(list)
    for row in data.rows(TRACES):
        found[row["session"]].append(row)
    return list(found.values())


def payload(event: str, row: Json, call_id: str) -> Json:
    """A row as the hook of Claude Code tells of it."""
    own = row["server"] in (None, "claude-code")
    name = row["tool"] if own else f"mcp__{row['server']}__{row['tool']}"
    return {
        "hook_event_name": event, "session_id": row["session"], "cwd": "/",
        "permission_mode": "default", "tool_name": name, "tool_input": row["parameters"],
        "tool_use_id": call_id,
    }  # fmt: skip


def is_right(advice: FailureAdvice, call: Call, client: HookClient) -> bool:
    """Whether the agent did what it was told; it was not told so."""
    if advice.by_session is not None and _followed(advice.by_session, call, client):
        return True
    return any(
        each.corrected_parameters is not None
        and any(
            row["outcome"] == "success"
            and row["tool"] == call.row["tool"]
            and same_json(_plain(row["parameters"]), _plain(each.corrected_parameters))
            for row in call.next[:WITHIN]
        )
        for each in advice.suggestions
    )


def _followed(advice: SessionAdvice, call: Call, client: HookClient) -> bool:
    after = call.next[:WITHIN]
    worked = [row for row in after if row["outcome"] == "success"]
    match advice.kind:
        case "read_first":
            wanted = texts_at(advice.parameters or {}, "file_path")
            if wanted:
                return any(
                    wanted[0].rpartition("/")[2] in json.dumps(row) for row in _looks(worked)
                )
            return bool(_looks(after[:3]))
        case "other_tool":
            return any(row["tool"] == advice.tool for row in worked[:3])
        case "near_text":
            return any(_has_passage(row, advice.values, client) for row in worked)
        case "near_path":
            return any(_names(row, value) for row in worked for value in advice.values)
        case "program":
            return any(advice.values[0] in json.dumps(row["parameters"]) for row in worked)
        case "folder":
            return any(
                row["tool"] == "Bash"
                and ("cd " in _command(row) or "pwd" in _command(row)
                     or advice.values[1] not in _command(row))
                for row in worked[:3]
            )  # fmt: skip
        case "options":
            return any(_has_option(row, call, advice) for row in worked)


def _command(row: Json) -> str:
    return str(row["parameters"].get("command", ""))


def _looks(rows: Sequence[Json]) -> list[Json]:
    return [
        row
        for row in rows
        if row["tool"] in _LOOKS
        or (
            row["tool"] == "Bash"
            and _command(row).split()[:1]
            and _command(row).split()[0] in _LOOKING
        )
    ]


def _names(row: Json, path: str) -> bool:
    if row["tool"] == "Bash":
        return path in _command(row) or path.rpartition("/")[2] in _command(row)
    given = [text for name in ("file_path", "path") for text in texts_at(row["parameters"], name)]
    return any(is_same_path(path, each) or each.startswith(f"{path}/") for each in given)


def _has_passage(row: Json, passages: Sequence[str], client: HookClient) -> bool:
    role = client.roles.get(row["tool"])
    if role is None or not role.old:
        return False
    old = "".join(texts_at(row["parameters"], role.old))
    return any(fuzz.partial_ratio(old[:2_000], each[:2_000]) >= 90 for each in passages if each)


def _has_option(row: Json, call: Call, advice: SessionAdvice) -> bool:
    try:
        program = shlex.split(_command(call.row))[0]
    except (ValueError, IndexError):
        return False
    command = _command(row)
    return row["tool"] == "Bash" and command.startswith(program) and (
        advice.values == ("",) or any(each in command for each in advice.values)
    )  # fmt: skip


@dataclass
class Counts:
    """What came of the replay."""

    good: int = 0
    good_changed: int = 0
    good_told: int = 0
    refused: int = 0
    others: int = 0
    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many failures by what was said, and whether that was right."""


async def replay(limit: int) -> Counts:
    """Replay the sessions; `limit` calls at most."""
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data=DataSettings(dir=Path(folder)),
            embedding=EmbeddingSettings(model="hashing"),
            retention=RetentionSettings(days=0),
        )
        async with open_context(settings) as context:
            rest = limit
            for rows in sessions():
                for place, row in enumerate(rows[:rest]):
                    await _replay_call(context, counts, Call(row, rows[place + 1 :]))
                rest -= len(rows)
                if rest <= 0:
                    break
    return counts


async def _replay_call(context: Context, counts: Counts, call: Call) -> None:
    client = read_client("claude-code")
    handler = HookHandler(context, "default", client, ChangedCalls())
    row, call_id = call.row, str(uuid4())
    before = await handler.handle_payload(payload("PreToolUse", row, call_id))
    if row["outcome"] == "success":
        counts.good += 1
        inner = before.get("hookSpecificOutput", {})
        counts.good_changed += "updatedInput" in inner or inner.get("permissionDecision") == "deny"
        counts.good_told += bool(before)
        await handler.handle_payload(payload("PostToolUse", row, call_id) | {"tool_response": None})
        return
    failed = payload("PostToolUseFailure", row, call_id) | {"error": row["error"]["message"]}
    event = read_event(client, failed)
    assert event is not None
    assert event.call is not None
    if call.is_refused:
        counts.refused += 1
        assert await handler.handle_payload(failed) == {} or "interrupted" in failed["error"]
    elif event.call.role is None:
        counts.others += 1
        await handler.handle_payload(failed)
    else:
        advice = await handler.advise_on(event, event.call)
        await handler.handle_payload(failed)
        kind = advice.by_session.kind if advice.by_session else "suggestion"
        counts.by_kind[_judged(advice, call, kind, client)] += 1


def _judged(advice: FailureAdvice, call: Call, kind: str, client: HookClient) -> tuple[str, str]:
    if not advice.text:
        is_command = call.row["tool"] == "Bash"
        if call.worked_unchanged():
            return "silent, and the like call worked later unchanged", "right"
        what = "a command" if is_command else call.row["tool"]
        return f"silent: {what}", "silent"
    return kind, "right" if is_right(advice, call, client) else "not seen to be followed"


def table(counts: Counts) -> list[str]:
    """The figures in lines of Markdown."""
    kinds = sorted({kind for kind, _ in counts.by_kind})
    failures = sum(counts.by_kind.values())
    right = sum(n for (_, what), n in counts.by_kind.items() if what == "right")
    advised = {k: n for k, n in counts.by_kind.items() if not k[0].startswith("silent")}
    advised_right = sum(n for (_, what), n in advised.items() if what == "right")
    files = {k: n for k, n in counts.by_kind.items() if k[0] != "silent: a command"}
    of_mistakes = sum(files.values()) - sum(
        n for (kind, _), n in files.items() if kind.startswith("silent, and")
    )

    def share(count: int, of: int) -> str:
        return f"{count / of:.2f}" if of else "-"

    lines = [
        "| | of | share |",
        "|---|---|---|",
        f"| good calls changed or refused | {counts.good_changed} of {counts.good:,} | |",
        f"| good calls that something was said of | {counts.good_told} of {counts.good:,} | |",
        f"| failing calls of built-in tools, not refused by the user | {failures} | |",
        f"| ... advised or repaired rightly | {advised_right} | {share(advised_right, failures)} |",
        f"| ... or rightly left alone | {right} | {share(right, failures)} |",
        f"| ... advised rightly, of those that are no command's own result | {advised_right} of "
        f"{of_mistakes} | {share(advised_right, of_mistakes)} |",
        f"| advice that the agent did by itself, of all advice | {advised_right} of "
        f"{sum(advised.values())} | {advised_right / max(1, sum(advised.values())):.2f} |",
        "",
        "| what was said | right | not seen to be followed | silent |",
        "|---|---|---|---|",
    ]
    for kind in kinds:
        of = [counts.by_kind[kind, each] for each in ("right", "not seen to be followed", "silent")]
        lines.append(f"| {kind} | {of[0]} | {of[1]} | {of[2]} |")
    lines += ["", f"{counts.refused} calls that the user refused or stopped, and {counts.others} "
              "failures of other tools, are not counted."]  # fmt: skip
    return lines


def cost(calls: int = 200) -> list[str]:
    """Milliseconds of a hook by HTTP and by the command, before a call that is right."""
    told = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Read"}
    body = json.dumps(told | {"tool_input": {"file_path": "/repo/a.py"}}).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder / "data", folder / "log") as service:
            url = service.url
            http = [_timed(lambda: _post(url, body)) for _ in range(calls)]
            command = [str(Path(sys.executable).with_name("aftercall")), "hook", "claude-code"]
            command += ["--service", url]
            before = _processor_ms()
            run = [_timed(lambda: _run(command, body)) for _ in range(calls)]
            between = _processor_ms()
            bare = [_timed(lambda: _run([sys.executable, "-c", "0"], b"")) for _ in range(calls)]
            after = _processor_ms()
    rows = (("by HTTP", http), ("by the command", run), ("Python alone, which starts it", bare))
    lines = ["| a hook before a call that is right, ms | p10 | p50 | p95 |", "|---|---|---|---|"]
    for name, times in rows:
        parts = statistics.quantiles(times, n=20)
        lines.append(f"| {name} | {parts[1]:.1f} | {parts[9]:.1f} | {parts[18]:.1f} |")
    used = ((between - before) / calls, (after - between) / calls)
    lines.append("")
    lines.append(
        f"Processor time of a hook by the command: {used[0]:.0f} ms, of which Python alone takes "
        f"{used[1]:.0f}. Measured at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    )
    return lines


def _processor_ms() -> float:
    """Milliseconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1_000


def _timed(work: Any) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1_000


def _post(url: str, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/hooks/claude-code", body, headers)  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310  # our own service
        answer.read()


def _run(command: list[str], body: bytes) -> None:
    subprocess.run(command, input=body, capture_output=True, check=True)


def main() -> None:
    """Measure, print, and with `--write` keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cost", action="store_true", help="also what a hook takes")
    parser.add_argument("--limit", type=int, default=1_000_000, help="calls at most")
    parser.add_argument("--write", action="store_true", help=f"write {FIGURES.name}")
    args = parser.parse_args()
    if not data.is_there(TRACES):
        sys.exit(data.left_out("hooks", TRACES))
    lines = [*cost(), ""] if args.cost else []
    lines += table(asyncio.run(replay(args.limit)))
    text = "\n".join(lines)
    print(text)
    if args.write:
        about = (__doc__ or "").split("\n\n", 2)[2].strip()
        made = made_by("python -m bench.hooks --cost --write")
        head = f"# Hooks of coding agents\n\n{made}\n\n"
        FIGURES.write_text(f"{head}{about}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
