"""The grounds of a case: where an edit may take a value from."""

from collections.abc import Sequence

from aftercall.json_values import JsonValue
from retrieval.edits.kinds import Grounds
from retrieval.paths import Path, place_of
from retrieval.proposals.case import Case


def grounds_of(case: Case) -> Grounds:
    """The faults, the context, and what is usual; into a call that writes nothing usual is put."""

    def usual(path: Path) -> Sequence[JsonValue]:
        if case.profile is None or case.writes:
            return ()
        return [common.value for common in case.profile.common_values(place_of(path))]

    return Grounds(case.faults, case.context, usual)
