"""Which values of a failed call its error is about."""

from collections.abc import Sequence

from aftercall.json_values import JsonObject, JsonValue
from retrieval.profile.places import place_of, value_at
from retrieval.reading.faults import Fault

_NOT_THE_VALUE = frozenset({"missing", "unexpected"})


def blamed_values(
    parameters: JsonObject, faults: Sequence[Fault]
) -> dict[str, tuple[Fault, JsonValue]]:
    """The places whose values an error is about, with the fault and the value there.

    A parameter that is missing or has no business there says nothing of a value. The only parameter
    of a call is meant also where the error names none.
    """
    named: dict[str, tuple[Fault, JsonValue]] = {
        place_of(fault.path): (fault, value)
        for fault in faults
        if fault.path and fault.kind not in _NOT_THE_VALUE
        if (value := value_at(parameters, fault.path)) is not None
    }
    if not named and len(parameters) == 1 and not any(fault.path for fault in faults):
        [(name, value)] = parameters.items()
        fault = faults[0] if len(faults) == 1 else Fault("invalid", (name,))
        if fault.kind not in _NOT_THE_VALUE:
            named[name] = fault, value
    return named
