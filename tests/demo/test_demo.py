"""The demo: real service, real gateway, real tools; its figures are asserted."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from service.demo.scenario import PlayedCall, ScriptedCall, ScriptedSession, run_demo, show_calls
from service.demo.stage import StageError, make_repository

pytestmark = pytest.mark.real


async def test_the_demo_keeps_its_promise() -> None:
    """Mistakes of every kind are repaired as meant, the second agent profits, honesty included."""
    shown = io.StringIO()
    console = Console(file=shown, width=120)
    done = await run_demo(console)
    played = done.calls

    by_mistake: dict[str, list[PlayedCall]] = {}
    for each in played:
        if each.call.mistake:
            by_mistake.setdefault(each.call.mistake, []).append(each)
    first_try = [each for each in played if each.ending == "fine"]
    after = [each for each in played if each.ending in ("fine", "repaired")]

    assert len(first_try) / len(played) < 0.3
    assert len(after) / len(played) >= 0.7
    assert all(each.as_meant for each in played), "a repaired call did something else"
    for mistake in (
        "wrong parameter name", "wrong type", "wrong form", "value out of range",
        "wrong time zone", "value not allowed",
    ):  # fmt: skip
        assert all(each.ending == "repaired" for each in by_mistake[mistake]), mistake

    # The first agent has to help itself where nobody knew; the second does not.
    for mistake in ("wrong revision name", "missing parameter"):
        first, *later = by_mistake[mistake]
        assert (first.session.agent, first.ending) == ("ada", "by itself")
        assert ("ben", "repaired") in {(each.session.agent, each.ending) for each in later}
    # Another value that nobody mended so is suggested, and not done.
    [misspelt] = [each for each in played if "logn" in str(each.call.sends)]
    assert misspelt.ending == "by itself"
    assert misspelt.best["class"] == "semantic"
    assert any(each.session.agent == "ben" and each.repairs_known >= 2 for each in played)

    # What nobody stated and nobody learned is not guessed.
    [unreadable] = by_mistake["unreadable value"]
    assert unreadable.ending == "failed"
    assert not unreadable.best

    # A tool degrades, is demoted, recovers, and is chosen again, whoever called it meanwhile.
    degraded = [each for each in done.scene if not each.succeeded]
    assert 1 <= len(degraded) <= 3
    assert {each.called for each in degraded} == {"latest_changes"}
    after = done.scene[done.scene.index(degraded[-1]) + 1]
    assert after.succeeded
    assert after.called != "latest_changes"
    assert after.score < 0.8
    mended = [each for each in done.scene if each.agent == "eve"]
    assert 1 < len(mended) <= 30
    assert [each.chosen == "latest_changes" for each in mended] == [False] * (len(mended) - 1) + [
        True
    ]
    assert (done.scene[-1].called, done.scene[-1].succeeded) == ("latest_changes", True)

    text = shown.getvalue()
    assert len(text.splitlines()) <= 60
    for words in (
        "The fittest tool for", "Calls that were not right at once",
        "right at the first try", "Next: make serve",
    ):  # fmt: skip
        assert words in text


def test_at_80_columns_nothing_is_cut() -> None:
    """Error, suggestion and ending stand whole below one another."""
    session = ScriptedSession(agent="cyd", name="cyd-1", purpose="p", calls=[])
    call = ScriptedCall(tool="git_git_show", sends={}, means={}, mistake="m")
    best = {
        "confidence": 0.98,
        "changes": [{"op": "replace", "path": "/revision", "value": "feature/a-long-name-of-it"}],
    }
    error = "Error executing tool git_show: Ref 'feature/a-long-name' did not resolve to an object"
    shown = io.StringIO()
    console = Console(file=shown, width=80)
    show_calls(console, [PlayedCall(session, call, "repaired", error, best, as_meant=True)])

    text = " ".join(shown.getvalue().split())
    assert "Ref 'feature/a-long-name' did not resolve to an object" in text
    assert "-> repaired 0.98: revision='feature/a-long-name-of-it'" in text
    assert "…" not in text


def test_without_git_the_demo_names_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer without git is told what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StageError, match="git"):
        make_repository(tmp_path / "repository")
