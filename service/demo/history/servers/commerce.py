"""The server `commerce`: orders, stock, and two ways to change money that compete."""

from random import Random

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import PythonCall
from service.demo.history.drift import Drift, Weather
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import DAY, choice, form, number, schema, text, whole
from service.demo.history.slips import (
    against_a_rule,
    as_text,
    beyond,
    called,
    day_forms,
    formed,
    left_out,
    mistaken,
    renamed,
)
from service.demo.history.subjects import day
from service.demo.history.tools import READS, WRITES, Moment, SimTool, Wish

_PER_EURO = {"EUR": 1.0, "USD": 1.08, "GBP": 0.85, "JPY": 163.0, "CHF": 0.95}
_SIGNS = {"EUR": ("€", "euro"), "USD": ("$", "dollar"), "GBP": ("£",), "JPY": ("yen",)}
_CARRIERS = {"dhl": ("DHL Express",), "ups": ("UPS Ground",), "post": ("mail", "standard")}


def _order(dice: Random) -> str:
    return f"A{100000 + int(dice.random() * 9000)}"


def _known(order: str) -> None:
    if not order.startswith("A"):
        raise ToolFault("hidden_rule", f"order_id {order!r} must start with 'A'", type="ValueError")
    if int(order[1:]) >= 109000:
        raise ToolFault("not_found", f"no order {order!r}", type="LookupError", code="NOT_FOUND")


def _without_letter(order: str, dice: Random) -> str:
    del dice
    return order.removeprefix("A")


def _foreign(order: str, dice: Random) -> str:
    return f"A{int(order[1:]) + 20000 + int(dice.random() * 500)}"


def _get_order(call: JsonObject, moment: Moment) -> JsonValue:
    _known(str(call["order_id"]))
    return {"order": call["order_id"], "lines": 1 + int(moment.dice.random() * 6)}


def _wish_order(dice: Random) -> Wish:
    return Wish({"order_id": _order(dice)}, "See what the customer ordered")


def _list_orders(call: JsonObject, moment: Moment) -> JsonValue:
    return {"orders": int(moment.dice.random() * int(str(call["limit"])))}


def _wish_orders(dice: Random) -> Wish:
    parameters: JsonObject = {"since": day(dice), "limit": dice.choice((20, 50))}
    if dice.random() < 0.4:
        parameters["carrier"] = dice.choice(sorted(_CARRIERS))
    return Wish(parameters, "List the orders of these days")


def _refund(call: JsonObject, moment: Moment) -> JsonValue:
    _known(str(call["order_id"]))
    if not moment.may_write:
        raise ToolFault(
            "permission", "permission denied: refunds need the role 'cashier'",
            type="PermissionError", code="EPERM",
        )  # fmt: skip
    if moment.dice.random() < 0.04:
        raise ToolFault(
            "conflict", f"order {call['order_id']} has been refunded already",
            type="ConflictError", code="ALREADY_REFUNDED",
        )  # fmt: skip
    return {"refunded": call["amount"]}


def _wish_refund(dice: Random) -> Wish:
    amount = round(5 + dice.random() * 140, 2)
    parameters: JsonObject = {
        "order_id": _order(dice), "amount": amount,
        "reason": dice.choice(("damaged", "late", "other")),
    }  # fmt: skip
    return Wish(parameters, f"Refund {amount} to the customer")


def _stock(call: JsonObject, moment: Moment) -> JsonValue:
    sku = str(call["sku"])
    if sku != sku.upper():
        raise ToolFault("not_found", f"unknown sku {sku!r}", type="KeyError")
    return {"sku": sku, "pieces": int(moment.dice.random() * 400)}


def _wish_stock(dice: Random) -> Wish:
    sku = f"{dice.choice(('BX', 'KT', 'RM'))}-{10 + int(dice.random() * 30)}"
    return Wish({"sku": sku, "warehouse": dice.choice(("north", "south"))}, "See what is in stock")


def _convert(call: JsonObject, moment: Moment) -> JsonValue:
    del moment
    amount, source, target = float(str(call["amount"])), str(call["source"]), str(call["target"])
    return {"amount": round(amount / _PER_EURO[source] * _PER_EURO[target], 2)}


def _wish_convert(dice: Random) -> Wish:
    source, target = dice.sample(sorted(_PER_EURO), 2)
    amount = round(10 + dice.random() * 900, 2)
    parameters: JsonObject = {"amount": amount, "source": source, "target": target}
    return Wish(parameters, f"Say what {amount} {source} are in {target}")


def _quote(call: JsonObject, moment: Moment) -> JsonValue:
    pair = str(call["pair"])
    if "/" not in pair or not set(pair.split("/")) <= set(_PER_EURO):
        raise ToolFault(
            "hidden_rule", f"pair {pair!r} not recognised, expected BASE/QUOTE", type="ValueError"
        )
    base, quote = pair.split("/")
    return {"rate": round(_PER_EURO[quote] / _PER_EURO[base], 4), "source": moment.day % 2}


def _wish_quote(dice: Random) -> Wish:
    base, quote = dice.sample(sorted(_PER_EURO), 2)
    return Wish({"pair": f"{base}/{quote}"}, f"Get the rate of {base} in {quote}")


_CURRENCY = choice(*sorted(_PER_EURO))

TOOLS = (
    SimTool(
        server="commerce", name="get_order", run=_get_order, wish=_wish_order,
        dialect=PythonCall(), input_schema=schema("order_id", order_id=text()),
        slips=(
            against_a_rule("order_id", _without_letter),
            renamed("order_id", "id", "order", weight=1.5),
            mistaken("order_id", _foreign),
        ),
        description="Read an order.", annotations=READS, latency_ms=60, popularity=2.0,
    ),
    SimTool(
        server="commerce", name="list_orders", run=_list_orders, wish=_wish_orders,
        dialect=PythonCall(),
        input_schema=schema(
            "since", since=form(DAY), limit=whole(1, 100, default=50),
            carrier=choice(*sorted(_CARRIERS)),
        ),
        slips=(
            formed("since", day_forms, weight=2),
            beyond("limit", 100, 200, 500),
            renamed("since", "from_date", "start_date"),
            called("carrier", _CARRIERS),
            as_text("limit"),
        ),
        description="The orders since a day.", annotations=READS, latency_ms=340, popularity=1.2,
        drift=(Drift(6, 9, "timeout", Weather(timeouts=0.16, slowness=2.8)),),
    ),
    SimTool(
        server="commerce", name="refund_order", run=_refund, wish=_wish_refund,
        dialect=PythonCall(),
        input_schema=schema(
            "order_id", "amount", "reason", order_id=text(), amount=number(0.01, 500),
            reason=choice("damaged", "late", "other"),
        ),
        slips=(
            as_text("amount", weight=2),
            called("reason", {"damaged": ("broken",), "late": ("delayed",), "other": ("none",)}),
            left_out("reason"),
            against_a_rule("order_id", _without_letter),
        ),
        description="Give money back.", annotations=WRITES, latency_ms=480, popularity=0.9,
    ),
    SimTool(
        server="commerce", name="stock_level", run=_stock, wish=_wish_stock,
        dialect=PythonCall(),
        input_schema=schema("sku", sku=text(), warehouse=choice("north", "south")),
        slips=(
            mistaken("sku", lambda sku, _: sku.lower(), weight=2),
            renamed("sku", "product", "item"),
            called("warehouse", {"north": ("North", "N"), "south": ("South",)}),
        ),
        description="How many pieces there are.", annotations=READS, latency_ms=45,
        popularity=1.1,
    ),
    SimTool(
        server="commerce", name="convert_currency", namespace="currency", run=_convert,
        wish=_wish_convert, dialect=PythonCall(),
        input_schema=schema(
            "amount", "source", "target", amount=number(0), source=_CURRENCY, target=_CURRENCY
        ),
        slips=(
            called("source", _SIGNS, weight=1.5),
            called("target", _SIGNS, weight=1.5),
            renamed("source", "from", "from_currency", weight=1.5),
            as_text("amount"),
        ),
        description="Change an amount into another currency.", tags=("money",), latency_ms=30,
        popularity=1.0,
    ),
    SimTool(
        server="commerce", name="fx_quote", namespace="currency", run=_quote, wish=_wish_quote,
        dialect=PythonCall(), input_schema=schema("pair", pair=text()),
        slips=(
            against_a_rule("pair", lambda pair, _: pair.replace("/", ""), weight=2),
            renamed("pair", "symbol", "currencies"),
        ),
        description="The exchange rate of a pair of currencies.", tags=("money",), latency_ms=260,
        popularity=0.7,
        drift=(
            Drift(23, 26, "rate_limited", Weather(limits=0.22)),
        ),
    ),
)  # fmt: skip
