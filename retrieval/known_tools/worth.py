"""Worth: how much trouble a fact saves in a week: calls that need not fail, or less is lost. Pure.

A failed call is the unit. A fact is worth the failures a week that it is about, times how likely
who reads it avoids them.
"""

from retrieval.known_tools.facts import Contract, Limit, Pitfall, ToolFacts, Wait

# Shares of failures that reading avoids, by judgement; only their order decides what is told first.
_LESSON = 0.9
_BARE_ERROR = 0.3
"""An error without a lesson warns, and says itself what was wrong."""
_BOUNDARY = 0.8
"""Who knows that it is not the tool's job does not ask."""
_UTILITY = 0.4
_SWITCH = 0.6
_WAIT = 0.5
_CONTRACT = 0.3
_COHESION = 0.3
_LIMIT = 0.7
_METHODS = 0.1
_FARES = 0.05
_SIGNATURE = 0.1
"""Of all failures: many are of wrong parameters, but whoever may call a tool mostly has its schema,
and failed all the same."""
_PER_CALL = 0.01
"""Of a call that need not fail: what types and words are worth where nothing has failed yet."""
_UNUSED = 0.001
"""Of a tool that nobody called; above nothing, so that room that is left is used."""


def of_signature(facts: ToolFacts) -> float:
    """Of types, bounds and optional names beside the required names."""
    return _SIGNATURE * facts.failures_per_week + _base(facts)


def of_fares(facts: ToolFacts) -> float:
    """Of how a tool fares."""
    return _FARES * facts.failures_per_week + 0.1 * _base(facts)


def of_about(facts: ToolFacts) -> float:
    """Of what a tool is for; little, as whoever may call it was told."""
    return 0.2 * _base(facts)


def of_methods(facts: ToolFacts) -> float:
    """Of how the methods fare."""
    return _METHODS * facts.failures_per_week + 0.1 * _base(facts)


def of_boundary(facts: ToolFacts) -> float:
    """Of what is not the tool's job."""
    return _BOUNDARY * facts.boundary.per_week


def of_utility(facts: ToolFacts) -> float:
    """Of when its answers are of little use."""
    return _UTILITY * facts.utility.per_week + 0.1 * _base(facts)


def of_cohesion(facts: ToolFacts) -> float:
    """Of the warning that a tool does several jobs."""
    return _COHESION * facts.boundary.per_week


def of_pitfall(pitfall: Pitfall) -> float:
    """Of an error and its lesson."""
    if pitfall.lesson is None:
        return _BARE_ERROR * pitfall.per_week
    return (_BARE_ERROR + (_LESSON - _BARE_ERROR) * pitfall.confidence) * pitfall.per_week


def of_limit(facts: ToolFacts, limit: Limit) -> float:
    """Of a bound that the schema does not state; a pitfall often says the same."""
    share = limit.refused / max(1, facts.failures)
    return _LIMIT * min(1.0, share) * facts.failures_per_week


def of_contract(contract: Contract) -> float:
    """Of what to expect of a result."""
    return _CONTRACT * contract.per_week


def of_wait(wait: Wait) -> float:
    """Of how long to wait."""
    return _WAIT * wait.per_week


def of_split(facts: ToolFacts) -> float:
    """Of what to call in the tool's place."""
    return _SWITCH * facts.split.per_week if facts.split is not None else 0.0


def _base(facts: ToolFacts) -> float:
    return _PER_CALL * facts.calls_per_week + _UNUSED
