"""The server `calendar`: events, free slots, times in other zones."""

from random import Random
from zoneinfo import available_timezones

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import Zod
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import DAY, TIME, choice, form, schema, text, texts, whole
from service.demo.history.slips import (
    as_one,
    as_text,
    beyond,
    called,
    day_forms,
    formed,
    invented,
    left_out,
    mistaken,
    renamed,
    time_forms,
)
from service.demo.history.subjects import CITY_OF, PEOPLE, ZONES, day, subject, time
from service.demo.history.tools import READS, WRITES, Moment, SimTool, Wish

_ZONES = frozenset(available_timezones())


def _city(zone: str, dice: Random) -> str | None:
    city = CITY_OF.get(zone)
    if city is None:
        return None
    return dice.choice((city, f"{zone.split('/', maxsplit=1)[0]}/{city}", zone.lower()))


def _zone(name: str) -> None:
    if name not in _ZONES:
        raise ToolFault(
            "not_found", f"Invalid timezone: 'No time zone found with key {name}'",
            type="RangeError",
        )  # fmt: skip


def _list_events(call: JsonObject, moment: Moment) -> JsonValue:
    if str(call["until"]) < str(call["since"]):
        raise ToolFault("hidden_rule", "until must not be before since", type="RangeError")
    return {"events": int(moment.dice.random() * 9)}


def _wish_list(dice: Random) -> Wish:
    first = day(dice)
    parameters: JsonObject = {"since": first, "until": f"{first[:8]}28"}
    if first > str(parameters["until"]):
        parameters["until"] = first
    return Wish(parameters, "See what is planned in these days")


def _create_event(call: JsonObject, moment: Moment) -> JsonValue:
    if str(call["start"])[3:] not in ("00", "15", "30", "45"):
        raise ToolFault("hidden_rule", "start must lie on a quarter of an hour", type="RangeError")
    if moment.dice.random() < 0.07:
        raise ToolFault(
            "conflict", f"409: {call['day']} {call['start']} overlaps an event of an attendee",
            type="ConflictError", code="409",
        )  # fmt: skip
    return {"event": f"e-{int(moment.dice.random() * 90000)}"}


def _wish_event(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {
        "title": f"Meeting on {about}", "day": day(dice), "start": time(dice),
        "minutes": dice.choice((30, 45, 60)), "attendees": dice.sample(PEOPLE, 2),
    }  # fmt: skip
    return Wish(parameters, f"Set up a meeting on {about}")


def _find_slot(call: JsonObject, moment: Moment) -> JsonValue:
    people = call["people"]
    if isinstance(people, list) and len(people) > 5:
        raise ToolFault("hidden_rule", "at most 5 calendars are compared at once", type="Error")
    return {"day": call["day"], "start": f"{9 + int(moment.dice.random() * 8):02d}:00"}


def _wish_slot(dice: Random) -> Wish:
    about = subject(dice)
    parameters: JsonObject = {
        "people": dice.sample(PEOPLE, 3), "day": day(dice), "minutes": dice.choice((30, 60, 90)),
    }  # fmt: skip
    if dice.random() < 0.4:
        parameters["part"] = dice.choice(("morning", "afternoon", "any"))
    return Wish(parameters, f"Find a time to talk about {about}")


def _convert_time(call: JsonObject, moment: Moment) -> JsonValue:
    del moment
    _zone(str(call["from_zone"]))
    _zone(str(call["to_zone"]))
    return {"time": call["time"], "zone": call["to_zone"]}


def _wish_convert(dice: Random) -> Wish:
    here, there = dice.sample(ZONES, 2)
    parameters: JsonObject = {"time": time(dice), "from_zone": here, "to_zone": there}
    return Wish(parameters, f"Say when that is for the colleagues in {CITY_OF[there]}")


TOOLS = (
    SimTool(
        server="calendar",
        name="list_events",
        run=_list_events,
        wish=_wish_list,
        dialect=Zod(),
        input_schema=schema("since", "until", since=form(DAY), until=form(DAY), owner=text()),
        slips=(
            formed("since", day_forms, weight=2),
            renamed("since", "start", "from", weight=1.5),
            renamed("until", "end", "to"),
            left_out("until"),
        ),
        description="The events between two days.",
        annotations=READS,
        latency_ms=95,
        popularity=1.5,
    ),
    SimTool(
        server="calendar",
        name="create_event",
        run=_create_event,
        wish=_wish_event,
        dialect=Zod(),
        input_schema=schema(
            "title", "day", "start",
            title=text(), day=form(DAY), start=form(TIME), minutes=whole(15, 240, default=60),
            attendees=texts(),
        ),
        slips=(
            formed("start", time_forms, weight=2),
            formed("day", day_forms),
            renamed("minutes", "duration", "duration_minutes", weight=1.5),
            as_one("attendees"),
            as_text("minutes"),
            left_out("start", 0.5),
        ),
        description="Put an event into the calendar.",
        annotations=WRITES,
        latency_ms=160,
        popularity=1.3,
    ),
    SimTool(
        server="calendar",
        name="find_slot",
        run=_find_slot,
        wish=_wish_slot,
        dialect=Zod(),
        input_schema=schema(
            "people", "day",
            people=texts(), day=form(DAY), minutes=whole(15, 240, default=30),
            part=choice("morning", "afternoon", "any", default="any"),
        ),
        slips=(
            as_one("people", weight=1.5),
            formed("day", day_forms),
            beyond("minutes", 240, 300, 480, weight=0.5),
            renamed("people", "attendees", "participants", weight=1.5),
            called("part", {"any": ("all",), "morning": ("am",)}),
        ),
        description="Find a time at which people are free.",
        annotations=READS,
        latency_ms=520,
    ),
    SimTool(
        server="calendar",
        name="convert_time",
        run=_convert_time,
        wish=_wish_convert,
        dialect=Zod(),
        input_schema=schema(
            "time", "from_zone", "to_zone",
            time=form(TIME), from_zone=text("IANA name"), to_zone=text("IANA name"),
        ),
        slips=(
            mistaken("to_zone", _city, weight=2),
            mistaken("from_zone", _city),
            formed("time", time_forms, weight=1.5),
            renamed("to_zone", "target_timezone", "to"),
            invented("dst", True),  # noqa: FBT003  # a value, not an option
        ),
        description="The same moment in another time zone.",
        annotations=READS,
        latency_ms=22,
        popularity=1.2,
    ),
)  # fmt: skip
