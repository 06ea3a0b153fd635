"""The demo's tables and closing words."""

import re
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.demo.agents import Ending, PlayedCall
from service.demo.boundary_scene import BoundaryScene
from service.demo.fitness_scene import NAMESPACE, SCENARIO, SceneCall

_SHOWN: dict[Ending, str] = {
    "fine": "[green]ok[/]",
    "repaired": "[bold green]repaired[/]",
    "by itself": "[yellow]by itself[/]",
    "failed": "[red]failed[/]",
}


def show_calls(console: Console, played: Sequence[PlayedCall]) -> None:
    """Each call with its error, the suggestion and how the retry ended."""
    table = Table(title="What the agents did", show_lines=True, expand=True)
    table.add_column("call", ratio=3)
    table.add_column("the tool's own error", ratio=4)
    table.add_column("suggestion, confidence, evidence", ratio=5)
    table.add_column("ended", no_wrap=True)
    for each in played:
        mistake = f"\n[dim]{each.call.mistake}[/]" if each.call.mistake else ""
        table.add_row(
            f"[bold]{each.session.name}[/] {escape(each.call.tool.split('_', 1)[1])}{mistake}",
            escape(_essence(each.error)),
            _suggestion(each),
            _SHOWN[each.ending] + ("" if each.as_meant else "\n[red]not as meant[/]"),
        )
    console.print(table)


def _suggestion(each: PlayedCall) -> str:
    if each.error is None:
        return ""
    if each.suggestion is None:
        return "[dim]none: nothing known that would be more than a guess[/]"
    evidence = f" [dim]from {escape(each.evidence)}[/]" if each.evidence else ""
    return f"{escape(each.suggestion)}\n[bold]{each.confidence:.2f}[/]{evidence}"


def show_summary(console: Console, played: Sequence[PlayedCall]) -> None:
    """Success before and after, over all and per session, and who profited from whom."""
    table = Table(title="Calls that succeeded")
    for title in ("session", "calls", "at the first try", "with Aftercall", "as meant"):
        table.add_column(title, justify="left" if title == "session" else "right")
    names = list(dict.fromkeys(each.session.name for each in played))
    for name in [*names, "all"]:
        rows = [each for each in played if name in ("all", each.session.name)]
        after = [each for each in rows if each.ending in ("fine", "repaired")]
        table.add_row(
            name,
            str(len(rows)),
            _share([each for each in rows if each.ending == "fine"], rows),
            _share(after, rows),
            _share([each for each in after if each.as_meant], after),
        )
    console.print(table)
    learned = [each for each in played if each.ending == "repaired" and each.repairs_known]
    for each in learned:
        times = "once" if each.repairs_known == 1 else f"{each.repairs_known} times"
        console.print(
            f"  [bold]{each.session.agent}[/] made a mistake that others had mended {times} before"
            f" ({each.call.mistake}, {escape(each.call.tool)}): it was repaired at once."
        )


def show_scene(console: Console, played: Sequence[SceneCall]) -> None:
    """Who was called and how it went; the factors and the score are the script's."""
    table = Table(title=f"The fittest of the namespace {NAMESPACE}", expand=True)
    for title in ("the script's list", "caller", "called", "ended"):
        table.add_column(title, no_wrap=title == "called")
    for title in ("base", "quality", "demotion", "score"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("fittest", no_wrap=True)
    for each in played:
        factors = each.factors
        table.add_row(
            each.phase, each.agent, escape(each.called),
            "[green]ok[/]" if each.succeeded else "[red]failed[/]",
            f"{factors.base:.2f}", f"{factors.quality:.2f}", f"{factors.failure_demotion:.2f}",
            f"{each.score:.2f}", escape(each.chosen),
        )  # fmt: skip
    console.print(table)
    failed = sum(not each.succeeded for each in played)
    mended = sum(each.agent == "eve" for each in played)
    console.print(
        f'  For "{SCENARIO}" the script lost its place after {_times(failed, "failure")} '
        f"and had it back after {_times(mended, 'success')}, without anybody changing a caller."
    )


def show_boundaries(console: Console, scene: BoundaryScene) -> None:
    """What the tools said of themselves, and what a tool builder and the next agent are told."""
    table = Table(title="What tools say of themselves", expand=True)
    for title in ("tool", "asked for", "it said", "what became of it"):
        table.add_column(title, no_wrap=title == "tool")
    for each in scene.calls:
        said = "[green]success[/]" if each.said == "success" else f"[yellow]{escape(each.said)}[/]"
        table.add_row(escape(each.tool), escape(each.asked), said, escape(each.lane))
    console.print(table)
    console.print("  What a tool builder is recommended:")
    for advice in scene.recommendations:
        console.print(f"  - {escape(advice.message)}")
    console.print("  What the next agent is told, in a prompt:")
    console.print(scene.known_tools, markup=False, highlight=False)


def show_next_steps(console: Console) -> None:
    """What to run next."""
    console.print(
        "\nNothing above was canned: errors came from the tools, corrections from /suggest."
        "\nNext:\n"
        "  [bold]make serve[/]\n"
        "      run the service and keep what it learns\n"
        "  [bold].venv/bin/aftercall gateway --config mcp.json[/]\n"
        "      put it in front of your own MCP servers\n"
        '  README.md, "Use it from Python"\n'
        "      the SDK in ten lines"
    )


def _times(count: int, what: str) -> str:
    plural = {"failure": "failures", "success": "successes"}[what]
    return f"{count} {what if count == 1 else plural}"


def _share(part: Sequence[PlayedCall], whole: Sequence[PlayedCall]) -> str:
    return f"{len(part)} ({len(part) / max(1, len(whole)):.0%})"


def _essence(error: str | None) -> str:
    """The tool's own words without the frames that its server and validator put around them."""
    if error is None:
        return ""
    words = re.sub(r"^Error executing tool \w+: ", "", error)
    words = re.sub(r"^\d+ validation errors? for \w+\n", "", words)
    words = re.sub(r" \[type=[^\n]*|\n\s*For further information[^\n]*", "", words)
    text = "; ".join(" ".join(part.split()) for part in re.split(r"\n(?=\S)", words))
    return text if len(text) <= 160 else f"{text[:157]}..."
