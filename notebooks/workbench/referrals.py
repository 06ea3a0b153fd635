"""Five made-up tools that refer requests elsewhere, for histories in which few tools do."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

from aftercall import Execution, Outcome

_JOBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "page_fetcher": (
        ("HTTP transport", "httpTransport", "HTTP transports"),
        ("HTML parsing", "html-parsing", "parsing of HTML"),
    ),
    "invoice_sender": (
        ("tax calculation", "TaxCalculation", "calculating taxes"),
        ("e-mail delivery", "email delivery", "emailDelivery"),
    ),
    "room_booker": (("catering orders", "cateringOrder", "ordering catering"),),
    "query_runner": (
        ("chart drawing",), ("text translation",), ("password reset",), ("weather forecast",),
        ("file upload",), ("route planning",), ("currency conversion",),
    ),
    "film_finder": (("ticket refund", "refunding tickets"), ("film reviews", "reviewing films")),
}  # fmt: skip
"""What each tool is asked for next to its own job, in its words."""

_NAMES_ALL = frozenset({"page_fetcher"})
"""Tools that name all jobs of a request; the others name one."""

_LONG_AGO = frozenset({"film_finder"})
"""Tools that were asked so three weeks ago, and are not any more."""

_REFERRALS = 14
_SUCCESSES = 6


def referral_calls(now: datetime, *, seed: int = 3) -> list[Execution]:
    """Calls of the five tools within the last four weeks, the same for the same seed and time.

    `page_fetcher` names two jobs each time, `invoice_sender` one of two, `room_booker` always the
    same, `query_runner` one of many, and `film_finder` named one of two until three weeks ago.
    """
    dice = Random(f"referrals {seed}")  # noqa: S311  # repeatable, keeps no secret
    calls: list[Execution] = []
    for tool, jobs in _JOBS.items():
        first, last = (28.0, 21.0) if tool in _LONG_AGO else (9.0, 0.0)
        for number in range(_REFERRALS):
            share = (number + dice.random()) / _REFERRALS
            at = now - timedelta(days=first - share * (first - last))
            named = jobs if tool in _NAMES_ALL else (dice.choice(jobs),)
            axes = [dice.choice(wordings) for wordings in named]
            calls.append(_call(dice, tool, at, axes))
        calls += [_call(dice, tool, now - timedelta(days=day)) for day in range(_SUCCESSES)]
    return calls


def _call(dice: Random, tool: str, at: datetime, axes: Sequence[str] = ()) -> Execution:
    said = None
    if axes:
        wanted = " and ".join(axes)
        said = Outcome.wrong_tool_boundary(
            "that is not my job", boundary_axes=axes, evidence=f"asked for {wanted}"
        )
    return Execution(
        execution_id=str(UUID(int=dice.getrandbits(128), version=4)),
        timestamp=at,
        agent="researcher",
        tool_name=tool,
        parameters={"request": f"number {dice.randrange(1000)}"},
        outcome="success" if said is None else "failure",
        error=None if said is None else said.error,
    )
