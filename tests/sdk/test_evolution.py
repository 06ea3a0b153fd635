"""The whole evolution: failures in, a new version in force out, or nothing changed and why."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from aftercall import AsyncClient
from aftercall.evolution import (
    CHANGELOG_FILE,
    ChatEvolver,
    Checks,
    EvolutionResult,
    EvolutionTask,
    EvolvedCode,
    EvolvingTool,
    PastFailure,
    evolve,
)
from aftercall.models import Evolution, Promotion, PromotionChange, PromotionHistory, SimilarFailure
from aftercall.promotions_file import read_promotions, write_promotions
from tests.sdk.scripted_chat_server import ScriptedChatServer, fenced

OLD = "import sys\nprint(sys.argv[1].upper())\n"
NEW = "import sys\nprint(sys.argv[1].upper() if len(sys.argv) > 1 else '')\n"
NEWER = "import sys\nprint(' '.join(sys.argv[1:]).upper())\n"

RUNS_BARE = Checks(commands=(("{python}", "{file}"),), timeout_s=30)
"""The tool's own check: it must not fail without an argument."""


class Home:
    """A folder with promotions and one tool, evolved by a scripted chat server."""

    def __init__(self, root: Path, chat: ScriptedChatServer) -> None:
        self.root = root
        self.chat = chat
        self.tools = root / "tools"
        self.tools.mkdir(parents=True)
        self.script = self.tools / "shout.py"
        self.script.write_text(OLD)
        self.promotions_file = root / ".tool_promotions.json"

    async def evolve(self, **changes: Any) -> EvolutionResult:
        given = {
            "tool_id": "shout", "namespace": "shout", "script": self.script,
            "promotions_file": self.promotions_file,
            "reason": "Evolved to fix: fails without an argument",
            "evolver": ChatEvolver(self.chat.url, "small-model", timeout_s=20), **changes,
        }  # fmt: skip
        names = [each.name for each in fields(EvolvingTool) if each.name in given]
        tool = EvolvingTool(**{name: given.pop(name) for name in names})
        return await evolve(tool, given.pop("evolver"), **given)

    @property
    def promotions(self) -> dict[str, Promotion]:
        return read_promotions(self.promotions_file, missing_ok=True)

    @property
    def changes(self) -> list[dict[str, str]]:
        """The changelog."""
        lines = (self.root / CHANGELOG_FILE).read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def versions(self) -> list[str]:
        """What is in the tools' folder besides the script."""
        return sorted(path.name for path in self.tools.iterdir() if path != self.script)

    def is_untouched(self) -> bool:
        return (
            self.script.read_text() == OLD
            and not self.versions
            and {path.name for path in self.root.iterdir()} <= {"tools"}
        )


def promotion(version: str, **more: Any) -> Promotion:
    at = "2026-02-20T14:30:00Z"
    return Promotion(evolved_version=version, original_version="1.0.0", promoted_at=at, **more)


@pytest.fixture
def home(tmp_path: Path, chat: ScriptedChatServer) -> Home:
    return Home(tmp_path / "root", chat)


class Registry:
    """A service in memory, as far as evolutions ask for it."""

    def __init__(self) -> None:
        self.promoted: dict[str, list[Promotion]] = {}
        self.failures: list[SimilarFailure] = []

    async def tool_failures(self, *_: str, **__: object) -> list[SimilarFailure]:
        return self.failures

    async def find_evolutions(self, *_: str, **__: object) -> list[Evolution]:
        return []

    async def promotion_history(self, namespace: str) -> PromotionHistory:
        changes = [
            PromotionChange(at=each.promoted_at, action="promoted", promotion=each)
            for each in self.promoted.get(namespace, [])
        ]
        return PromotionHistory(namespace=namespace, changes=changes)

    async def promote(self, namespace: str, promotion: Promotion) -> None:
        self.promoted.setdefault(namespace, []).append(promotion)


async def test_a_failing_tool_gets_its_next_version(home: Home) -> None:
    """File, promotion, changelog and service tell one story; the original stays as it is."""
    home.chat.says(fenced(NEW, before="Guards the argument."))
    registry = Registry()
    met = {"scenario": "say nothing", "error_message": "IndexError", "severity": "high"}
    registry.failures = [SimilarFailure(**met, similarity=0.9, weight=1, at="2026-02-20T14:30:00Z")]
    result = await home.evolve(
        checks=RUNS_BARE,
        service=registry,
        scenario="say nothing at all",
        failures=[PastFailure(scenario="be silent", error_message="IndexError: argv")],
        lessons=["an argument may be missing"],
    )
    assert result.status == "evolved", result.why
    assert result.version == "1.1.0"
    assert result.file == home.tools / "shout_v1_1.py"
    assert result.file.read_text() == NEW
    assert home.script.read_text() == OLD
    assert home.promotions == {"shout": result.promotion}
    written = json.loads(home.promotions_file.read_text())["shout"]
    assert written.pop("promoted_at").endswith("Z")
    assert written == {
        "evolved_version": "1.1.0",
        "evolved_file": "tools/shout_v1_1.py",
        "original_version": "1.0.0",
        "reason": "Evolved to fix: fails without an argument",
        "mutation": "Guards the argument.",
    }
    assert result.told_service
    assert registry.promoted == {"shout": [result.promotion]}
    (entry,) = home.changes
    told = [entry[name] for name in ("version", "madeFrom", "file", "sha256")]
    digest = hashlib.sha256(NEW.encode()).hexdigest()
    assert told == ["1.1.0", "1.0.0", "tools/shout_v1_1.py", digest]
    facts = home.chat.asked[0].facts
    assert [failure["scenario"] for failure in facts["failures"]] == ["be silent", "say nothing"]
    assert facts["lessons"] == ["an argument may be missing"]
    assert OLD.strip() in home.chat.asked[0].user


async def test_the_version_in_force_is_what_evolves_next(home: Home) -> None:
    """1.2 is made from 1.1, and the changelog is cumulative; the hint is the mutation."""
    home.chat.says(fenced(NEW), fenced(NEWER))
    await home.evolve()
    result = await home.evolve(mutation_hint="take all arguments")
    assert (result.version, result.status) == ("1.2.0", "evolved")
    assert NEW.strip() in home.chat.asked[1].user
    assert home.promotions["shout"].original_version == "1.0.0"
    assert home.promotions["shout"].mutation == "take all arguments"
    made = [(each["version"], each["madeFrom"]) for each in home.changes]
    assert made == [("1.1.0", "1.0.0"), ("1.2.0", "1.1.0")]


async def test_broken_code_is_asked_again_with_what_was_wrong(home: Home) -> None:
    home.chat.says(fenced("import sys\nprint(sys.argv[1"), fenced(NEW))
    result = await home.evolve()
    assert result.status == "evolved"
    assert [attempt.accepted for attempt in result.attempts] == [False, True]
    assert "no Python at line 2" in result.attempts[0].why
    (rejected,) = home.chat.asked[1].facts["your_answers_that_were_rejected"]
    assert "no Python at line 2" in rejected["why"]
    assert rejected["code"] == "import sys\nprint(sys.argv[1"


async def test_code_that_fails_its_checks_is_never_kept(home: Home) -> None:
    """The checks' output is told to the evolver and to the caller, in part."""
    failing = "import sys\nprint('x' * 10**6)\nraise SystemExit('still broken')\n"
    home.chat.says(fenced(failing))
    result = await home.evolve(checks=RUNS_BARE)
    assert result.status == "rejected"
    assert "was asked twice" in result.why
    assert len(result.attempts) == 2
    for attempt in result.attempts:
        assert "failed with exit code 1" in attempt.why
        assert "still broken" in attempt.output[-5000:] == attempt.output
    assert "still broken" in home.chat.asked[1].user
    assert home.is_untouched()


@pytest.mark.parametrize("tool_id", ["../../evil", "/etc/passwd", "a\\b", "..", "`x`$(y)\n# z"])
async def test_neither_ids_nor_answers_name_files(home: Home, tool_id: str, tmp_path: Path) -> None:
    """The file is named from the script, whatever the tool is called and whatever the code says."""
    home.chat.says(fenced("# file: ../../etc/x.py\n" + NEW, info="python ../../etc/y.py"))
    result = await home.evolve(tool_id=tool_id, namespace=tool_id)
    assert result.status == "evolved", result.why
    assert home.versions == ["shout_v1_1.py"]
    assert home.promotions[tool_id].evolved_file == "tools/shout_v1_1.py"
    assert os.listdir(tmp_path) == ["root"]  # noqa: PTH208  # names are all that is asked for
    assert [each["toolId"] for each in home.changes] == [tool_id]


async def test_versions_that_exist_are_stepped_over(home: Home) -> None:
    """Files, and versions that the service knows of; never overwritten, never used twice."""
    (home.tools / "shout_v1_1.py").write_text("mine")
    (home.tools / "shout_v1_2.py").symlink_to("nowhere")
    home.chat.says(fenced(NEW))
    result = await home.evolve()
    assert result.version == "1.3.0"
    assert (home.tools / "shout_v1_1.py").read_text() == "mine"
    registry = Registry()
    await registry.promote("shout", promotion("1.7.0"))
    home.chat.says(fenced(NEWER))
    assert (await home.evolve(service=registry)).version == "1.8.0"


async def test_secrets_stay_at_home(home: Home) -> None:
    """Of the source, the reason, the failures: nothing reaches the model, all is put back."""
    secret = "ghp_" + "a1B2c3D4e5" * 4
    source = f'KEY = "{secret}"\nprint(KEY[0])\n'
    home.script.write_text(source)

    class Doubling:
        async def evolve(self, task: EvolutionTask) -> EvolvedCode:
            assert secret not in repr(task)
            return EvolvedCode(task.source + "print(2)\n", f"uses {secret}")

    result = await home.evolve(
        evolver=Doubling(),
        reason=f"401 for {secret}",
        failures=[PastFailure(scenario="s", error_message=f"bad key {secret}")],
    )
    assert result.status == "evolved"
    assert result.file.read_text() == source + "print(2)\n"
    assert secret not in home.promotions_file.read_text()
    assert secret not in (home.root / CHANGELOG_FILE).read_text()
    assert secret not in result.model_dump_json()


async def test_an_evolver_that_breaks_is_told_and_changes_nothing(home: Home) -> None:
    class Broken:
        async def evolve(self, task: EvolutionTask) -> EvolvedCode:  # noqa: ARG002
            raise RuntimeError("out of ideas")

    result = await home.evolve(evolver=Broken())
    assert result.status == "failed"
    assert "RuntimeError: out of ideas" in result.why
    assert home.is_untouched()


async def test_a_service_that_is_away_holds_nothing_up(
    home: Home, chat: ScriptedChatServer
) -> None:
    """What was promoted here stands, and the result says that the service does not know."""
    home.chat.says(fenced(NEW))
    async with AsyncClient("http://127.0.0.1:9", retries=0) as client:
        result = await home.evolve(service=client)
    assert result.status == "evolved"
    assert not result.told_service
    assert any("does not know of the promotion" in note for note in result.notes)
    assert home.promotions["shout"] == result.promotion


async def test_a_script_that_is_no_python_is_not_evolved(home: Home) -> None:
    """Nothing would show that its new version is whole; the model is not even asked."""
    shell = home.tools / "shout.sh"
    shell.write_text("#!/bin/sh\necho $1\n")
    result = await home.evolve(script=shell)
    assert (result.status, home.chat.asked) == ("failed", [])
    assert "is no Python" in result.why


@pytest.mark.parametrize(
    "evolved_file",
    [".env", "tools/.env", "tools/shout.py", "tools/none_v1_1.py", "tools/shout_v9_9.py"],
)
async def test_promotions_cannot_make_the_evolver_read_other_files(
    home: Home, evolved_file: str
) -> None:
    """A promotion of something else, or of nothing: the original evolves, and a note tells why."""
    (home.root / ".env").write_text("PRIVATE")
    (home.tools / ".env").write_text("PRIVATE")
    promoted = promotion("1.1.0", evolved_file=evolved_file)
    write_promotions(home.promotions_file, {"shout": promoted})
    home.chat.says(fenced(NEW))
    result = await home.evolve()
    assert result.version == "1.2.0"
    assert "PRIVATE" not in home.chat.asked[0].user
    assert OLD.strip() in home.chat.asked[0].user
    assert any("the original" in note for note in result.notes)


async def test_a_changelog_that_cannot_be_written_is_noted(home: Home) -> None:
    """The promotion stands."""
    (home.root / CHANGELOG_FILE).mkdir()
    home.chat.says(fenced(NEW))
    result = await home.evolve()
    assert result.status == "evolved"
    assert any("the changelog could not be written" in note for note in result.notes)


EVOLVES = """
import asyncio, sys
from pathlib import Path
from aftercall.evolution import EvolvedCode, EvolvingTool, evolve
import aftercall.evolution.files as commit

class Numbering:
    async def evolve(self, task):
        return EvolvedCode(f"print({task.reason!r})")

async def main(root, tool_id, times):
    for number in range(times):
        result = await evolve(
            EvolvingTool(tool_id=tool_id, namespace=tool_id, script=root / "tools" / "shout.py"),
            Numbering(), promotions_file=root / ".tool_promotions.json",
            reason=f"{tool_id} {number}",
        )
        assert result.status == "evolved", result.why

root, tool_id, times, killed_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]

def wait_to_be_killed(*_args, **_kwargs):
    print("ready", flush=True)
    sys.stdin.read()

if killed_at:
    setattr(commit, killed_at, wait_to_be_killed)
    if killed_at == "update_promotions":  # after its file is made, before it is written
        def update(path, change):
            change({})
            wait_to_be_killed()
        commit.update_promotions = update
print("started", flush=True)
asyncio.run(main(root, tool_id, times))
"""


def start(
    root: Path, tool_id: str, *, times: int = 1, killed_at: str = ""
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", EVOLVES, str(root), tool_id, str(times), killed_at],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.real
@pytest.mark.prove
def test_processes_that_evolve_at_once_lose_no_entry(home: Home) -> None:
    """Three processes, five evolutions each, one script: every version is there exactly once."""
    ids = ["one", "two", "three"]
    processes = [start(home.root, tool_id, times=5) for tool_id in ids]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert set(home.promotions) == set(ids)
    entries = home.changes
    assert sorted(e["reason"] for e in entries) == sorted(f"{i} {n}" for i in ids for n in range(5))
    assert len({entry["version"] for entry in entries}) == 15
    assert len(home.versions) == 15
    for entry in entries:
        content = (home.root / entry["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]


@pytest.mark.real
@pytest.mark.parametrize(
    ("killed_at", "promoted"),
    [("create_beside", False), ("update_promotions", False), ("append_line", True)],
)
async def test_a_kill_leaves_nothing_half_done(home: Home, killed_at: str, promoted: bool) -> None:
    """Before the file, between file and promotion, and before the changelog; then all goes on."""
    with start(home.root, "shout", killed_at=killed_at) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["started\n", "ready\n"]
        process.kill()
    left = home.versions
    assert left == ([] if killed_at == "create_beside" else ["shout_v1_1.py"])
    assert set(home.promotions) == ({"shout"} if promoted else set())
    home.chat.says(fenced(NEW))
    result = await home.evolve()
    assert result.status == "evolved", result.why
    assert result.version == ("1.1.0" if killed_at == "create_beside" else "1.2.0")
    assert [entry["version"] for entry in home.changes] == [result.version]


@pytest.mark.parametrize(
    "changes", [{"version": "newest"}, {"tool_id": ""}, {"namespace": "x" * 300}]
)
async def test_what_makes_no_sense_is_refused(home: Home, changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"version|character"):
        await home.evolve(**changes)
    assert home.is_untouched()
