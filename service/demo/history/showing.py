"""A history's report for a person at a terminal."""

from rich.console import Console
from rich.table import Table

from service.demo.history.report import HistoryReport


def show_report(console: Console, report: HistoryReport) -> None:
    """Two short tables: what happened, and how it went from stage to stage."""
    console.print(_counts(report))
    console.print(_stages(report))
    if not report.is_learned:
        console.print("The service is still learning; its answers get better for a while.")


def _counts(report: HistoryReport) -> Table:
    table = Table(title=f"{report.since:%d %b} to {report.until:%d %b %Y}", show_header=False)
    table.add_column("what")
    table.add_column("how many", justify="right")
    table.add_column("of them", overflow="fold")
    failed = sum(report.failures.values())
    followed = report.followed + report.by_hand
    most = sorted(report.failures.items(), key=lambda each: -each[1])[:5]
    table.add_row(
        "calls", f"{report.calls:,}",
        f"{report.sessions:,} sessions, {report.agents} agents, {report.tools} tools",
    )  # fmt: skip
    table.add_row(
        "failures", f"{failed:,}",
        ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in most),
    )  # fmt: skip
    table.add_row(
        "tasks", f"{report.tasks:,}",
        f"{report.first_rate:.1%} right at once, {report.final_rate:.1%} in the end",
    )  # fmt: skip
    table.add_row(
        "questions", f"{report.asked:,}", f"{report.abstained:,} times it knew nothing better"
    )
    table.add_row(
        "followed", f"{followed:,}",
        f"{report.right:,} did what was meant, {report.wrong:,} something else, "
        f"{report.failed:,} failed again",
    )  # fmt: skip
    table.add_row(
        "people said", f"{report.corrections + report.marks:,}",
        f"{report.corrections:,} corrections, {report.marks:,} marked failures",
    )  # fmt: skip
    return table


def _stages(report: HistoryReport) -> Table:
    table = Table(title="Tasks that ended well")
    for title in ("from", "calls", "at once", "in the end", "mended: asking", "mended: alone"):
        table.add_column(title, justify="left" if title == "from" else "right")
    for stage in report.stages:
        table.add_row(
            f"{stage.since:%d %b}",
            f"{stage.calls:,}",
            f"{stage.first_rate:.1%}",
            f"{stage.final_rate:.1%}",
            _share(stage.mended_asking),
            _share(stage.mended_alone),
        )
    return table


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
