"""Merging the profiles of a tool: of two halves of its calls, or of two of its schemas."""

from collections.abc import Iterable, Mapping

from retrieval.profile.bounded import merge_latest, merge_samples
from retrieval.profile.parameter import MAX_AGENTS, ParameterProfile, merge_parameters
from retrieval.profile.presence import merge_presence
from retrieval.profile.tool import (
    MAX_FAILED_CALLS,
    MAX_INNER,
    MAX_PARAMETERS,
    MAX_SUCCEEDED_CALLS,
    ToolProfile,
    standing,
)


def merge(left: ToolProfile, right: ToolProfile) -> ToolProfile:
    """The profile of the calls of both, as if one had seen them all.

    Exact as long as no bound is reached: then it does not matter how the calls were divided or in
    which order they came; only their own times count. Beyond the bounds it holds that no limit is
    exceeded, that counts are at most the true ones, and that no value is common that was not so in
    truth; numbers of calls, types, formats and ranges of what is kept since its first call, and all
    samples (agents, sessions), stay exact. Neither argument is changed.
    """
    merged = ToolProfile(
        successes=left.successes + right.successes,
        failures=left.failures + right.failures,
        last_success=max(left.last_success, right.last_success),
        last_failure=max(left.last_failure, right.last_failure),
        agents=merge_samples(left.agents, right.agents, MAX_AGENTS),
        parameters=_merge_places(left.parameters, right.parameters, MAX_PARAMETERS),
        inner=_merge_places(left.inner, right.inner, MAX_INNER),
        presence=merge_presence(left.presence, right.presence),
        succeeded_calls=merge_latest(
            left.succeeded_calls, right.succeeded_calls, MAX_SUCCEEDED_CALLS
        ),
    )
    failed = left.failed_calls | right.failed_calls
    mended = [
        call
        for call, at in merged.succeeded_calls.items()
        if call in failed
        and at >= max(left.failed_calls.get(call, 0), right.failed_calls.get(call, 0))
    ]
    merged.failed_calls = merge_latest(
        left.failed_calls, right.failed_calls, MAX_FAILED_CALLS, without=mended
    )
    merged.settle()
    return merged


def _merge_places(
    left: Mapping[str, ParameterProfile], right: Mapping[str, ParameterProfile], limit: int
) -> dict[str, ParameterProfile]:
    nothing = ParameterProfile()
    merged = {
        place: merge_parameters(left.get(place, nothing), right.get(place, nothing))
        for place in dict.fromkeys((*left, *right))
    }
    for place in _weakest(merged, len(merged) - limit):
        del merged[place]
    return merged


def _weakest(places: Mapping[str, ParameterProfile], count: int) -> Iterable[str]:
    if count <= 0:
        return ()
    return sorted(places, key=lambda place: standing(place, places[place]))[:count]
