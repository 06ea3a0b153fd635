"""The server `metrics`: series, alerts, silences."""

from random import Random

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import JsonSchema
from service.demo.history.drift import Drift, Weather
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import choice, schema, text, whole
from service.demo.history.slips import (
    against_a_rule,
    as_text,
    beyond,
    called,
    invented,
    left_out,
    mistaken,
    renamed,
)
from service.demo.history.tools import READS, WRITES, Moment, SimTool, Wish

_SERIES = ("http_requests", "queue_length", "login_errors", "payment_latency", "disk_used")
_SEVERITIES = {"critical": ("crit", "high"), "warning": ("warn", "medium"), "info": ("low",)}
_STEPS = ("30s", "1m", "5m", "1h")


def _query(call: JsonObject, moment: Moment) -> JsonValue:
    name = str(call["series"])
    if name not in _SERIES:
        raise ToolFault("not_found", f"series {name!r} not found", type="McpError", code="-32001")
    step, hours = str(call["step"]), int(str(call["hours"]))
    if step not in _STEPS:
        raise ToolFault(
            "hidden_rule", f'parse error: not a valid duration string: "{step}"',
            type="McpError", code="-32602",
        )  # fmt: skip
    if step == "30s" and hours > 48:
        raise ToolFault(
            "hidden_rule", "exceeded maximum resolution: with a step of 30s hours must be <= 48",
            type="McpError", code="-32602",
        )  # fmt: skip
    return {"points": hours, "last": round(moment.dice.random() * 100, 1)}


def _wish_query(dice: Random) -> Wish:
    name = dice.choice(_SERIES)
    parameters: JsonObject = {
        "series": name, "hours": dice.choice((1, 6, 24)), "step": dice.choice(_STEPS[1:]),
    }  # fmt: skip
    return Wish(parameters, f"See how {name} went")


def _words(step: str, dice: Random) -> str:
    return dice.choice({"1m": ("60", "1 minute"), "5m": ("300", "5 min"), "1h": ("3600", "hourly"),
                        "30s": ("30",)}[step])  # fmt: skip


def _near(name: str, dice: Random) -> str:
    return dice.choice((name.replace("_", "."), f"{name}_total", name.replace("_", "-")))


def _alerts(call: JsonObject, moment: Moment) -> JsonValue:
    del call
    return {"alerts": int(moment.dice.random() * 7)}


def _wish_alerts(dice: Random) -> Wish:
    parameters: JsonObject = {"severity": dice.choice(sorted(_SEVERITIES))}
    if dice.random() < 0.5:
        parameters["limit"] = dice.choice((10, 50))
    return Wish(parameters, "See which alerts are firing")


def _silence(call: JsonObject, moment: Moment) -> JsonValue:
    if not moment.may_write:
        raise ToolFault(
            "permission", "403 Forbidden: silencing needs the scope alerts:write",
            type="McpError", code="-32003",
        )  # fmt: skip
    if len(str(call["comment"])) < 8:
        raise ToolFault(
            "hidden_rule", "comment must have at least 8 characters", type="McpError",
            code="-32602",
        )  # fmt: skip
    return {"silence": f"s-{int(moment.dice.random() * 9999)}"}


def _wish_silence(dice: Random) -> Wish:
    name = dice.choice(_SERIES)
    parameters: JsonObject = {
        "alert": f"{name}_high", "minutes": dice.choice((30, 60, 120)),
        "comment": f"known, {name} is being looked at",
    }  # fmt: skip
    return Wish(parameters, f"Silence the alert on {name} while it is being looked at")


TOOLS = (
    SimTool(
        server="metrics", name="query_series", run=_query, wish=_wish_query, dialect=JsonSchema(),
        input_schema=schema(
            "series", "hours", series=text(), hours=whole(1, 720),
            step=text("how far apart the points are", default="5m"),
        ),
        slips=(
            against_a_rule("step", _words, weight=2),
            as_text("hours", weight=1.5),
            renamed("series", "metric", "name", weight=1.5),
            mistaken("series", _near, weight=1.5),
            renamed("hours", "range", "window"),
            invented("aggregation", "avg", "p95"),
        ),
        description="The points of a series.", annotations=READS, latency_ms=240, popularity=2.4,
        drift=(Drift(13, 14, "unavailable", Weather(outages=0.3, words="server is shutting down"
                                                    " for maintenance")),),
    ),
    SimTool(
        server="metrics", name="list_alerts", run=_alerts, wish=_wish_alerts, dialect=JsonSchema(),
        input_schema=schema(severity=choice(*sorted(_SEVERITIES)), limit=whole(1, 50, default=50)),
        slips=(
            called("severity", _SEVERITIES, weight=2),
            beyond("limit", 50, 100, 200),
            renamed("severity", "level", "priority", weight=1.5),
        ),
        description="The alerts that are firing.", annotations=READS, latency_ms=75,
        popularity=1.6,
    ),
    SimTool(
        server="metrics", name="silence_alert", run=_silence, wish=_wish_silence,
        dialect=JsonSchema(),
        input_schema=schema(
            "alert", "minutes", "comment", alert=text(), minutes=whole(5, 720), comment=text()
        ),
        slips=(
            left_out("comment"),
            against_a_rule("comment", lambda _, dice: dice.choice(("known", "ok", "wip"))),
            renamed("minutes", "duration", "duration_minutes", weight=1.5),
            as_text("minutes"),
        ),
        description="Keep an alert quiet for a while.", annotations=WRITES, latency_ms=90,
        popularity=0.6,
    ),
)  # fmt: skip
