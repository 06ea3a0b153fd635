"""What people say of calls afterwards: corrections of answers, marks on failures."""

from collections.abc import Mapping
from random import Random

from aftercall.models import Severity
from service.demo.history.records import Remark, SimCall

CORRECTED: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "words.translate_fast": (
        0.10,
        ("this reads like a machine wrote it", "the product names should not be translated"),
    ),
    "web.table_extractor": (0.12, ("these are the menu entries, not the prices",)),
    "library.archive_search": (0.06, ("all of these are years old",)),
    "words.summarise": (0.05, ("this leaves out the decision",)),
}
"""Tools whose successes users correct now and then: how often, and with which words."""

_MARKED = 0.3
"""Share of the failures of tools with competitors that somebody marks."""


_SEVERITIES: tuple[Severity, ...] = ("low", "medium", "medium", "high")

_NOTICED = 0.35
"""Share of the answers to something else than was meant that a user sees and says so."""


def remark_on(call: SimCall, dice: Random, *, is_as_meant: bool) -> Remark | None:
    """What somebody says of the call, if anybody does."""
    if call.fault is None and not is_as_meant and dice.random() < _NOTICED:
        return Remark(call, "that is not what I asked for")
    if call.fault is None:
        share, words = CORRECTED.get(f"{call.tool.server}.{call.tool.name}", (0.0, ()))
        return Remark(call, dice.choice(words)) if dice.random() < share else None
    if call.tool.namespace is None or call.fault.kind not in ("timeout", "unavailable"):
        return None
    if dice.random() >= _MARKED:
        return None
    return Remark(call, call.fault.message, dice.choice(_SEVERITIES))
