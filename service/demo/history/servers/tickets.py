"""The server `tickets`: its words help little, and one tool gets a version that renames `title`."""

from random import Random

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import WebApi
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import choice, schema, text, texts, whole
from service.demo.history.slips import (
    Slip,
    against_a_rule,
    as_one,
    as_text,
    beyond,
    called,
    invented,
    left_out,
    mistaken,
    renamed,
)
from service.demo.history.subjects import PEOPLE, subject
from service.demo.history.tools import DELETES, READS, WRITES, Moment, SimTool, Wish

RENAMED_ON = 18
"""The day on which `create_ticket` 2.0.0 calls the title `summary`."""

_STATUS = {"open": ("opened", "todo"), "waiting": ("pending", "blocked"),
           "resolved": ("closed", "done", "fixed")}  # fmt: skip
_PRIORITIES = {"p1": ("urgent", "critical"), "p2": ("high", "normal"), "p3": ("low", "medium")}


def _ticket(dice: Random) -> str:
    return f"TCK-{1000 + int(dice.expovariate(0.02)) % 400}"


def _bare(ticket: str, dice: Random) -> str:
    return dice.choice((ticket.removeprefix("TCK-"), f"#{ticket.removeprefix('TCK-')}"))


def _other(ticket: str, dice: Random) -> str:
    return f"TCK-{int(ticket.removeprefix('TCK-')) + 4000 + int(dice.random() * 900)}"


def _known(ticket: str) -> None:
    number = ticket.removeprefix("TCK-")
    if number == ticket or not number.isdigit():
        raise ToolFault(
            "hidden_rule", f"400 Bad Request: malformed ticket key {ticket}", type="ApiError",
            code="malformed_key",
        )  # fmt: skip
    if int(number) > 1500:
        raise ToolFault(
            "not_found", f"404 Not Found: ticket {ticket} does not exist", type="ApiError",
            code="not_found",
        )  # fmt: skip


def _search(call: JsonObject, moment: Moment) -> JsonValue:
    text_, status = str(call["text"]), call.get("status")
    if len(text_) < 3:
        raise ToolFault("hidden_rule", "400 Bad Request: text is too short", type="ApiError")
    return {"tickets": int(moment.dice.random() * (6 if status else 20))}


def _wish_search(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {"text": about, "page_size": dice.choice((10, 20, 25))}
    if dice.random() < 0.6:
        parameters["status"] = dice.choice(sorted(_STATUS))
    return Wish(parameters, f"Find the tickets about {about}")


def _get(call: JsonObject, moment: Moment) -> JsonValue:
    _known(str(call["key"]))
    return {"key": call["key"], "comments": int(moment.dice.random() * 12)}


def _wish_get(dice: Random) -> Wish:
    return Wish({"key": _ticket(dice)}, "Read the ticket that the customer names")


def _create(call: JsonObject, moment: Moment) -> JsonValue:
    del call
    return {"key": f"TCK-{1000 + int(moment.dice.random() * 400)}"}


def _wish_create(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {
        "title": f"Trouble with {about}", "priority": dice.choice(sorted(_PRIORITIES)),
        "labels": [about.split()[-1]],
    }  # fmt: skip
    return Wish(parameters, f"Open a ticket about {about}")


def _wish_create_2(dice: Random) -> Wish:
    wish = _wish_create(dice)
    parameters = {"summary" if k == "title" else k: v for k, v in wish.parameters.items()}
    return Wish(parameters, wish.context)


def _update(call: JsonObject, moment: Moment) -> JsonValue:
    _known(str(call["key"]))
    if call.get("status") == "resolved" and "resolution" not in call:
        raise ToolFault(
            "hidden_rule", "422 Unprocessable: resolution is required when status is resolved",
            type="ApiError", code="workflow",
        )  # fmt: skip
    if moment.dice.random() < 0.03:
        raise ToolFault(
            "conflict", f"409 Conflict: {call['key']} was changed by somebody else",
            type="ApiError", code="conflict",
        )  # fmt: skip
    return {"key": call["key"], "version": 1 + int(moment.dice.random() * 9)}


def _wish_update(dice: Random) -> Wish:
    status = dice.choice(sorted(_STATUS))
    parameters: JsonObject = {"key": _ticket(dice), "status": status}
    if status == "resolved":
        parameters["resolution"] = "fixed"
    if dice.random() < 0.4:
        parameters["assignee"] = dice.choice(PEOPLE)
    return Wish(parameters, f"Set the ticket to {status}")


def _delete(call: JsonObject, moment: Moment) -> JsonValue:
    _known(str(call["key"]))
    if not moment.may_write:
        raise ToolFault(
            "permission", "403 Forbidden: the role agent-basic may not delete tickets",
            type="ApiError", code="forbidden",
        )  # fmt: skip
    return {"deleted": True}


def _wish_delete(dice: Random) -> Wish:
    return Wish({"key": _ticket(dice)}, "Delete the ticket, it is a duplicate")


def _create_slips(title: str, *others: str, weight: float) -> tuple[Slip, ...]:
    return (
        renamed(title, *others, weight=weight),
        called("priority", _PRIORITIES, weight=2),
        as_one("labels"),
        left_out("priority", 0.5),
    )


_LABELS: JsonObject = texts()
_PRIORITY = choice("p1", "p2", "p3")

TOOLS = (
    SimTool(
        server="tickets", name="search_tickets", run=_search, wish=_wish_search, dialect=WebApi(),
        input_schema=schema(
            "text", text=text(), status=choice(*sorted(_STATUS)), page_size=whole(1, 25, default=20)
        ),
        slips=(
            called("status", _STATUS, weight=2),
            beyond("page_size", 25, 50, 100, weight=1.5),
            renamed("text", "query", "q", weight=1.5),
            as_text("page_size"),
        ),
        description="Find tickets by their words.", annotations=READS, latency_ms=210,
        popularity=1.7,
    ),
    SimTool(
        server="tickets", name="get_ticket", run=_get, wish=_wish_get, dialect=WebApi(),
        input_schema=schema("key", key=text("such as TCK-1042")),
        slips=(
            against_a_rule("key", _bare),
            renamed("key", "ticket_id", "id", weight=1.5),
            mistaken("key", _other),
        ),
        description="Read a ticket.", annotations=READS, latency_ms=80, popularity=1.8,
    ),
    SimTool(
        server="tickets", name="create_ticket", run=_create, wish=_wish_create, dialect=WebApi(),
        input_schema=schema("title", "priority", title=text(), priority=_PRIORITY, labels=_LABELS),
        slips=_create_slips("title", "subject", "summary", weight=1.5),
        description="Open a ticket.", annotations=WRITES, latency_ms=190, until=RENAMED_ON,
        popularity=1.2,
    ),
    SimTool(
        server="tickets", name="create_ticket", version="2.0.0", since=RENAMED_ON, run=_create,
        wish=_wish_create_2, dialect=WebApi(),
        input_schema=schema(
            "summary", "priority", summary=text(), priority=_PRIORITY, labels=_LABELS
        ),
        slips=_create_slips("summary", "subject", "title", weight=1.5),
        old_habit=renamed("summary", "title"),
        description="Open a ticket. Since 2.0.0 its title is called summary.", annotations=WRITES,
        latency_ms=170, popularity=1.2,
    ),
    SimTool(
        server="tickets", name="update_ticket", run=_update, wish=_wish_update, dialect=WebApi(),
        input_schema=schema(
            "key", "status", key=text(), status=choice(*sorted(_STATUS)), assignee=text(),
            resolution=choice("fixed", "duplicate", "wontfix"),
        ),
        slips=(
            called("status", _STATUS, weight=2),
            left_out("resolution", 2),
            renamed("assignee", "assigned_to", "owner"),
            against_a_rule("key", _bare),
            invented("notify", True),  # noqa: FBT003  # a value, not an option
        ),
        description="Change a ticket.", annotations=WRITES, latency_ms=150, popularity=1.4,
    ),
    SimTool(
        server="tickets", name="delete_ticket", run=_delete, wish=_wish_delete, dialect=WebApi(),
        input_schema=schema("key", key=text()),
        slips=(renamed("key", "ticket_id"), against_a_rule("key", _bare)),
        description="Delete a ticket for good.", annotations=DELETES, latency_ms=110,
        popularity=0.45,
    ),
)  # fmt: skip
