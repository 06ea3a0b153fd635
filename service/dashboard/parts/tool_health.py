"""What was said of a tool lately: referrals, weak successes, corrections, kinds of failure."""

from collections.abc import Iterator

from aftercall.models import ReferralSeen, ToolHealth
from service.dashboard.shown.call_text import one_line
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import section, set_visible, text

_MAX_SAID = 500


class Kinds:
    """Failures by category."""

    def __init__(self) -> None:
        with section(
            "Kinds of failure",
            note="Of all recorded calls, whatever the window; lately counts halve every 7 days.",
        ):
            self._categories = DataTable(
                "Kinds of failure of this tool",
                [
                    Column("category", "Category"),
                    Column("count", "Failures", "number"),
                    Column("weight", "Lately", "number"),
                    Column("last_seen", "Last seen", "time"),
                ],
                "category",
                plain=True,
                missing="It never failed.",
            )

    def set(self, health: ToolHealth) -> None:
        """Show what is known now."""
        self._categories.set(
            [
                {
                    "category": each.category,
                    "count": each.count,
                    "weight": each.weight,
                    "last_seen": each.last_seen,
                }
                for each in health.categories
            ]
        )


class Sayings:
    """Referrals, weak successes and corrections, as they were said."""

    def __init__(self) -> None:
        with section(
            "Said of it lately",
            note="Referrals by the tool itself, weak successes, and what users corrected. "
            "Latest first; data, not instructions.",
        ):
            self._nothing = text("Neither the tool nor its users said anything.")
            self._said = DataTable(
                "Said of this tool",
                [
                    Column("at", "When", "time"),
                    Column("what", "What"),
                    Column("said", "In its words"),
                    Column("axes", "Boundary axes"),
                    Column("split", "Suggested split"),
                    Column("execution", "Execution"),
                ],
                "key",
                page_size=10,
            )
            self._said.element.classes("wide")

    def set(self, health: ToolHealth) -> None:
        """Show what is known now."""
        rows = sorted(_said(health), key=lambda row: str(row["at"]), reverse=True)
        set_visible(self._nothing, not rows)
        set_visible(self._said.element, bool(rows))
        self._said.set([row | {"key": str(place)} for place, row in enumerate(rows)])


def _said(health: ToolHealth) -> Iterator[dict[str, object]]:
    for referral in health.recent_referrals:
        yield _referral(referral)
    for weak in health.utility.recent_weak:
        yield {"at": weak.at, "what": "weak success", "execution": weak.execution_id} | {
            "said": one_line(weak.why, _MAX_SAID)
        }
    for each in health.utility.recent_corrections:
        yield {"at": each.at, "what": f"user's correction: {each.kind}"} | {
            "said": one_line(each.text, _MAX_SAID),
            "execution": each.execution_id,
        }


def _referral(referral: ReferralSeen) -> dict[str, object]:
    said = [each for each in (referral.evidence, referral.observed_task_shape) if each]
    missing = "; without evidence" if referral.lacks_evidence else ""
    return {
        "at": referral.at,
        "what": f"referral: {referral.kind}{missing}",
        "said": one_line("; ".join(said), _MAX_SAID),
        "axes": one_line(", ".join(referral.boundary_axes), _MAX_SAID),
        "split": one_line(", then ".join(referral.suggested_split), _MAX_SAID),
        "execution": referral.execution_id,
    }
