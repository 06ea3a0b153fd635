"""`aftercall rules`: what one key alone taught is shown, and can be struck out for good."""

import argparse
import asyncio
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aftercall.errors import AftercallError
from aftercall.models import FailedCall, SuggestRequest
from mongo.contents import FailureRecord, mark_event
from mongo.records import Row, ToolKey
from service import rules
from service.cli.rules import command
from tests.ingest.histories import BEGIN
from tests.retrieval.cases import an_execution
from workbench.in_process import InProcessClient, in_process

WORKSPACE = "default"
TOOL = ToolKey(WORKSPACE, "srv", "find")


async def mend(
    service: InProcessClient, principal: str, first: int, wrong: tuple[int, int] = (50, 50)
) -> None:
    """Two agents mend `topK` alike."""
    for number, top_k in zip((first, first + 1), wrong, strict=True):
        calls = [
            an_execution(
                execution_id=f"00000000-0000-4000-8000-{number:010}{part:02}",
                timestamp=datetime.now(UTC).isoformat(), tool_name="find", sequence=part,
                agent=f"agent {number}", session_id=f"s {number}",
                parameters={"q": f"{number}", "topK": (top_k, 10)[part]},
                outcome=("failure", "success")[part],
                error={"type": "E", "message": "Bad request"} if not part else None,
            )
            for part in (0, 1)
        ]  # fmt: skip
        receipt = await service.context.intake.accept_executions(
            WORKSPACE, calls, principal=principal
        )
        assert receipt.accepted == len(calls)
    for number in range(6):
        mark = FailureRecord(TOOL, f"{first}-{number}", None, "a", "b", "high", BEGIN)
        await service.context.store.events.append(WORKSPACE, [mark_event(mark, principal)])
    await service.context.indexer.catch_up()


def told(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What the command prints."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    action, *more = arguments
    assert command.run(parser.parse_args([action, *more, "--data-dir", str(folder)])) == 0
    return capsys.readouterr().out.splitlines()


def test_what_one_key_taught_is_shown_and_struck_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Removed, it stays away; what is recorded later teaches it again."""

    async def say(first: int) -> None:
        async with in_process(tmp_path, embedder="hashing") as service:
            await mend(service, "k1", first)

    asyncio.run(say(1))
    listed = told(tmp_path, capsys, "list", "--suspicious")
    assert any("find  2 repairs" in line and "one key alone" in line for line in listed)
    assert "suspicious: 6 marks of 'find' by one key in an hour" in listed
    rule = next(line.split()[0] for line in listed if "2 repairs" in line)
    assert any("Bad request" in line for line in told(tmp_path, capsys, "explain", rule))
    told(tmp_path, capsys, "remove", rule)

    async def learned() -> None:
        async with in_process(tmp_path, embedder="hashing") as service:
            await service.context.indexer.catch_up()

    asyncio.run(learned())
    assert not any(rule in line for line in told(tmp_path, capsys, "list"))
    with pytest.raises(AftercallError, match="aftercall rules list"):
        told(tmp_path, capsys, "explain", rule)
    asyncio.run(say(5))
    assert any(rule in line for line in told(tmp_path, capsys, "list"))


def test_a_repair_that_is_switched_off_is_not_proposed_until_it_is_on_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stays in the list, marked; what is learned later does not switch it on, in no form."""

    async def proposed(first: int, wrong: tuple[int, int] = (50, 50)) -> list[object]:
        async with in_process(tmp_path, embedder="hashing") as service:
            await mend(service, "owner", first, wrong)
            failed = FailedCall(
                agent="owner", server_name="srv", tool_name="find",
                parameters={"q": "x", "topK": 50}, error={"message": "Bad request"},
            )  # fmt: skip
            found = await service.context.suggester.preview(
                WORKSPACE, SuggestRequest(execution=failed)
            )
            return [each.corrected_parameters for each in found.suggestions]

    mended = {"q": "x", "topK": 10}
    assert mended in asyncio.run(proposed(1))
    rule = next(line.split()[0] for line in told(tmp_path, capsys, "list") if "repairs" in line)
    told(tmp_path, capsys, "off", rule)
    assert mended not in asyncio.run(proposed(3, wrong=(40, 23)))  # now it is a bound
    listed = [line for line in told(tmp_path, capsys, "list") if "repairs" in line]
    assert all("(off)" in line for line in listed)
    other = next((line.split()[0] for line in listed if rule not in line), rule)
    told(tmp_path, capsys, "on", other)
    assert mended in asyncio.run(proposed(5))
    assert not any("(off)" in line for line in told(tmp_path, capsys, "list"))


async def test_where_nothing_was_learned_no_tool_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many failed: tens of thousands took half a minute."""
    async with in_process(tmp_path) as service:
        failures = [
            an_execution(
                execution_id=f"00000000-0000-4000-8000-{number:012}", tool_name=f"find-{number}",
                timestamp=datetime.now(UTC).isoformat(), session_id=f"s {number}",
                outcome="failure", error={"type": "E", "message": "Bad request"},
            )
            for number in range(3)
        ]  # fmt: skip
        await service.context.intake.accept_executions(WORKSPACE, failures)
        await service.context.indexer.catch_up()
        read = []
        knowledge = service.context.store.knowledge
        get = knowledge.get

        async def noted(workspace: str, kind: str, keys: Collection[str]) -> list[Row]:
            read.append((kind, keys))
            return await get(workspace, kind, keys)

        monkeypatch.setattr(knowledge, "get", noted)
        known = rules.find_rules(service.context.store, WORKSPACE)
        marked = rules.find_bursts(service.context.store, WORKSPACE)
        assert [each async for each in known] == [each async for each in marked] == []
        assert read == []
