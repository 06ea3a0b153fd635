"""First tries of agents that read descriptions: without and with what was learned of the calls.

    python -m bench.contracts [--write]

The demo's simulated tools; agents slip as the tools' tables say, in 35 % of their calls, and mend a
failed call themselves. 120 calls of each tool are recorded and learned from. Then other agents make
60 calls of each tool with slips of the same kinds. They read a description in a given share of
their calls, and understand the plain sentences of a learned contract: what is said of a parameter
is done to the call that they meant to send. A sentence is false if it changes a right call into one
that asks for something else. No model is asked, so the gain is that of agents who do what they
read.
"""

import argparse
import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from aftercall.json_values import JsonObject
from aftercall.models import LearnedContract, LearnedSentence
from aftercall.redaction import Redactor
from bench.figures import FOLDER, made_by
from bench.quality.brain import WORKSPACE, Brain, Recording, open_brain
from embeddings.embedders import HashingEmbedder
from mongo.records import ToolKey
from retrieval.answers.known_tools.common import ToolRecord
from retrieval.answers.known_tools.facts import facts_of
from service.demo.simulated_tools import CallMoment, SimTool, ToolFault, tools_on

from aftercall.gateway.learned_contracts import (  # isort: skip
    ContractFile,
    contract_hash,
    renew_file,
    within_budget,
)

SEED, DAY = 47, 29
LEARNED, ASKED, SLIPS = 120, 60, 0.35
SHARES = (1.0, 0.7, 0.4)
AGENTS = ("ada", "ben", "cyd", "dov")
PAGE = FOLDER / "contracts.md"
COMMAND = "python -m bench.contracts --write"


@dataclass
class Played:
    """Calls of new agents, and how many were right at the first try."""

    calls: int = 0
    right: int = 0


def moment(dice: Random) -> CallMoment:
    """A quiet hour: nothing fails but what was called wrong."""
    return CallMoment(day=DAY, load=0.0, may_write=True, dice=dice)


def refusal_of(tool: SimTool, call: JsonObject, dice: Random) -> ToolFault | None:
    """Return what the tool refuses a call for, leaving its server's bad days aside."""
    try:
        tool.check_schema(call)
    except ToolFault as fault:
        return fault
    at = moment(dice)
    for rule in tool.rules:
        if rule.chance == 1 and rule.applies_to(call, at):
            return rule.make_fault(call)
    return None


def drafted(tool: SimTool, dice: Random) -> tuple[JsonObject, JsonObject]:
    """Return what an agent would send, and what would be right."""
    right = tool.draw_wish(dice).parameters
    slips = list(tool.slips)
    if not slips or dice.random() >= SLIPS:
        return right, right
    slip = dice.choices(slips, [each.weight for each in slips])[0]
    return slip.make_slip(right, dice) or (right, right)


# What a reader does with a sentence

_NAMED = r"`(?P<name>[^`]+)`"
Reading = Callable[[JsonObject, re.Match[str]], None]


def _rename(call: JsonObject, said: re.Match[str]) -> None:
    if said["old"] in call and said["name"] not in call:
        call[said["name"]] = call.pop(said["old"])


def _bound(call: JsonObject, said: re.Match[str]) -> None:
    value = call.get(said["name"])
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = said["low"], said["high"]
        kind = type(value)
        value = max(value, kind(float(low))) if low else value
        call[said["name"]] = min(value, kind(float(high))) if high else value


def _remove(call: JsonObject, said: re.Match[str]) -> None:
    call.pop(said["name"], None)


def _cast(call: JsonObject, said: re.Match[str]) -> None:
    kinds: dict[str, Callable[[Any], Any]] = {"integer": int, "number": float, "string": str}
    value, kind = call.get(said["name"]), kinds.get(said["kind"])
    if isinstance(value, str | int | float) and kind is not None:
        try:
            call[said["name"]] = kind(value)
        except ValueError:
            return


def _replace(call: JsonObject, said: re.Match[str]) -> None:
    if json.dumps(call.get(said["name"]), ensure_ascii=False) == said["old"]:
        call[said["name"]] = json.loads(said["new"])


def _put(call: JsonObject, said: re.Match[str]) -> None:
    if said["name"] in call:
        call[said["name"]] = json.loads(said["new"])


def _add(call: JsonObject, said: re.Match[str]) -> None:
    call.setdefault(said["name"], json.loads(said["new"]))


def _unwrap(call: JsonObject, said: re.Match[str]) -> None:
    value = call.get(said["name"])
    if isinstance(value, list) and len(value) == 1:
        call[said["name"]] = value[0]


def _split(call: JsonObject, said: re.Match[str]) -> None:
    value = call.get(said["name"])
    if isinstance(value, str):
        call[said["name"]] = [*value.split(json.loads(said["new"]))]


def _lower(call: JsonObject, said: re.Match[str]) -> None:
    value = call.get(said["name"])
    if isinstance(value, str):
        call[said["name"]] = value.lower()


_READINGS: tuple[tuple[re.Pattern[str], Reading], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"The parameter is called {_NAMED}, not `(?P<old>[^`]+)`\.", _rename),
        (
            rf"{_NAMED} must be (?:at least (?P<low>[-\d.]+?))?(?: and )?"
            r"(?:at most (?P<high>[-\d.]+?))?\.(?= |$)",
            _bound,
        ),
        (rf"Leave out {_NAMED}\.", _remove),
        (rf"{_NAMED} must be of type (?P<kind>\w+)\.", _cast),
        (rf"For {_NAMED}, use (?P<new>.+?) instead of (?P<old>.+?)\.(?= |$)", _replace),
        (rf"For {_NAMED}, use (?P<new>.+?), whatever was there\.", _put),
        (rf"{_NAMED} must be given, such as (?P<new>.+?)\.(?= |$)", _add),
        (rf"{_NAMED} must be the value itself, not a list of it\.", _unwrap),
        (rf"{_NAMED} must be a list, its text parted at (?P<new>.+?)\.(?= |$)", _split),
        (rf"Write {_NAMED} in (?:lower case|small letters)\.", _lower),
    )
)


def reread(call: JsonObject, sentences: Sequence[str]) -> JsonObject:
    """Return the call as one would send it who has read the sentences."""
    sent = json.loads(json.dumps(call))
    for sentence in sentences:
        for pattern, read in _READINGS:
            for said in pattern.finditer(sentence):
                try:
                    read(sent, said)
                except ValueError:  # a value that was cut
                    continue
    return sent  # type: ignore[no-any-return]  # an object, as it came


# The story


def _taught(tool: SimTool, dice: Random) -> Iterator[tuple[str, str, JsonObject, Any]]:
    for number in range(LEARNED):
        agent, session = dice.choice(AGENTS), f"{tool.place} {number}"
        sent, means = drafted(tool, dice)
        if (fault := refusal_of(tool, sent, dice)) is not None:
            yield agent, session, sent, fault.error.model_dump(mode="json", exclude_none=True)
            sent = means
        if refusal_of(tool, sent, dice) is None:
            yield agent, session, sent, None


async def _learned(brain: Brain, tools: Sequence[SimTool]) -> dict[str, list[str]]:
    """Record and learn; the sentences that would be shown, by `server/tool`."""
    recording, dice = Recording([]), Random(SEED)  # repeatable, no secret
    for tool in tools:
        for agent, session, sent, error in _taught(tool, dice):
            recording.add(
                agent=agent, session=session, tool=tool.spec.name, server=tool.server,
                parameters=sent, context="", schema=tool.spec.input_schema, error=error,
                result={"ok": True},
            )  # fmt: skip
    await brain.learn(recording.executions)
    keys = {tool.place: ToolKey(WORKSPACE, tool.server, tool.spec.name) for tool in tools}
    health = await brain.memory.read_health(list(keys.values()))
    clusters = await brain.memory.axis_clusters(WORKSPACE)
    contracts, listed = [], {}
    for tool in tools:
        key = keys[tool.place]
        record = ToolRecord(key, None, await brain.memory.read_knowledge(key), health.get(key))
        facts = facts_of(record, clusters=clusters, now=datetime.now(UTC), clean=Redactor().text)
        said = [
            LearnedSentence(
                text=each.text, failures=each.failures, confidence=each.confidence, alone=each.alone
            )
            for each in facts.lessons
        ]
        contract = LearnedContract(
            tool_name=tool.spec.name, server_name=tool.server, sentences=said
        )
        contracts.append(contract)
        listed[f"{tool.server}/{tool.spec.name}"] = contract_hash(
            tool.spec.description, tool.spec.input_schema
        )
    return within_budget(renew_file(ContractFile(), listed, contracts), listed)


def _tried(tools: Sequence[SimTool], shown: dict[str, list[str]], share: float) -> Played:
    played, dice = Played(), Random(SEED + 1)  # as above
    readers = Random(SEED + 2)  # of its own: the calls are the same for each share
    for tool in tools:
        for _ in range(ASKED):
            sent, means = drafted(tool, dice)
            if readers.random() < share:
                sent = reread(sent, shown.get(f"{tool.server}/{tool.spec.name}", ()))
            played.calls += 1
            is_right = refusal_of(tool, sent, dice) is None and tool.is_same_call(sent, means)
            played.right += is_right
    return played


def _false(tools: Sequence[SimTool], shown: dict[str, list[str]]) -> tuple[list[str], int]:
    """Return the sentences that change a right call, and how many there are in all."""
    dice, found, count = Random(SEED + 3), [], 0  # as above
    for tool in tools:
        calls = [tool.draw_wish(dice).parameters for _ in range(ASKED)]
        calls = [each for each in calls if refusal_of(tool, each, dice) is None]
        for sentence in shown.get(f"{tool.server}/{tool.spec.name}", ()):
            count += 1
            if any(not tool.is_same_call(reread(each, [sentence]), each) for each in calls):
                found.append(f"{tool.place}: {sentence}")
    return found, count


def _reads(tool: SimTool) -> bool:
    claims = tool.spec.annotations
    return claims is not None and bool(claims.read_only_hint)


async def measure() -> str:
    """Return the page."""
    tools = tools_on(DAY)
    async with open_brain(HashingEmbedder()) as brain:
        everything = await _learned(brain, tools)
    reading = {f"{each.server}/{each.spec.name}" for each in tools if _reads(each)}
    usual = {key: said for key, said in everything.items() if key in reading}
    rows = ["| descriptions read in | none learned | tools that read (usual) | all tools |"]
    rows.append("|---|---:|---:|---:|")
    for share in SHARES:
        tried = [_tried(tools, shown, share) for shown in ({}, usual, everything)]
        cells = " | ".join(f"{each.right / each.calls:.3f}" for each in tried)
        rows.append(f"| {share:.0%} of calls | {cells} |")
    false, count = _false(tools, everything)
    chars = sum(len(line) for said in everything.values() for line in said)
    lines = [
        f"First-try success of {len(tools) * ASKED:,} calls on {len(tools)} simulated tools "
        f"({len(reading)} only read), of agents that slip in {SLIPS:.0%} of their calls. Asked are "
        "+10 points, and false constraints in at most 0.5 %.",
        "", *rows, "",
        f"Sentences shown: {count}, on {len(everything)} tools, {chars:,} characters in all. False "
        f"(they change a right call into another one): {len(false)}.",
        *[f"- `{each}`" for each in false],
        "", "Examples:", "",
        *[f"- {key}: {said[0]}" for key, said in sorted(everything.items())[:6]],
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page with `--write`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    body = asyncio.run(measure())
    print(body)
    if parser.parse_args().write:
        head = f"# Learned contracts\n\n{made_by(COMMAND)} {__doc__ and _about()}\n\n"
        Path(PAGE).write_text(f"{head}{body}\n", encoding="utf-8")


def _about() -> str:
    words = (__doc__ or "").split("\n\n", 2)[2]
    return " ".join(words.split())


if __name__ == "__main__":
    main()
