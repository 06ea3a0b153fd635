"""What the tests of statistics ask of a running service, and what they count by hand."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar
from uuid import uuid4

from aftercall.models import Execution, WireModel
from tests.service.running_service import RunningService, eventually, execution, failure

ModelT = TypeVar("ModelT", bound=WireModel)

Record = dict[str, Any]

TOOLS = (("web", "read_page"), ("web", "search"), (None, "convert"), ("files", "read_page"))
AGENTS = ("librarian", "planner", "team/scout", "<b>clerk</b>")
MESSAGES = (
    "Invalid parameter: topK must be <= 10",
    "timed out after 30 s",
    "record not found: 4711",
)


def asked(service: RunningService, path: str, model: type[ModelT], **query: Any) -> ModelT:
    """The answer to a question of `/stats`, which fits the contract."""
    response = service.client.get(f"/stats/{path}", params=query)
    assert response.status_code == 200, response.text
    return model.model_validate_json(response.content)


def counted(service: RunningService, calls: int) -> None:
    """Wait until so many calls are counted within 30 days: it takes a moment, no longer."""

    def is_so() -> bool:
        found = service.client.get("/stats/totals").json()["windows"][-1]
        totals = found["totals"]
        return found["isComplete"] and totals["successes"] + totals["failures"] == calls

    eventually(is_so)


def a_history(count: int, seed: int = 7) -> list[Record]:
    """Calls of the last 29 days, many of them of the last one, in no order."""
    dice, now = Random(seed), datetime.now(UTC)  # noqa: S311  # no secret
    records = []
    for _ in range(count):
        days = dice.choice((1, 3, 29))
        at = now - timedelta(seconds=dice.uniform(1, days * 86_400))
        server, tool = dice.choices(TOOLS, (5, 3, 2, 1))[0]
        fields: Record = {
            "timestamp": at.isoformat(), "serverName": server, "toolName": tool,
            "agent": dice.choice(AGENTS), "durationMs": dice.choice((0.0, dice.uniform(1, 5000))),
            "attempt": dice.choice((1, 1, 1, 2, 3)), "toolVersion": dice.choice((None, "1", "2.0")),
            "suggestionId": dice.choice((None, None, None, str(uuid4()))),
        }  # fmt: skip
        if dice.random() < 0.3:
            fields["error"] = {"message": dice.choice(MESSAGES)}
            records.append(failure(**fields))
        else:
            records.append(execution(**fields))
    return records


def recorded(service: RunningService, records: Sequence[Record]) -> None:
    """Record them, and wait until they are counted."""
    response = service.record(records)
    assert response.status_code == 202, response.text
    assert response.json()["accepted"] == len(records), response.text
    counted(service, len(records))


def since(records: Iterable[Record], moment: datetime | None) -> list[Execution]:
    """Those of a moment and later."""
    assert moment is not None
    calls = [Execution.model_validate(each) for each in records]
    return [each for each in calls if each.timestamp >= moment]


def pair(
    calls: Iterable[Execution], is_meant: Callable[[Execution], bool] = lambda _: True
) -> tuple[int, int]:
    """How many of these calls succeeded, and how many failed."""
    meant = [each.outcome for each in calls if is_meant(each)]
    return meant.count("success"), meant.count("failure")
