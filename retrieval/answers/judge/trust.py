"""What may be relied on of what others say: their repairs, their calls, their registrations. Pure.

What one other principal alone taught or registered is advice: it is never sure, comes behind what
is likely without it, and is not followed (4-rules.md, Trust).
"""

from typing import Any

from aftercall.json_values import JsonObject
from aftercall.models import ToolAnnotations
from aftercall.tables import sum_values
from mongo.contents import StoredTool
from retrieval.answers.judge.ranking import judge
from retrieval.answers.proposers.case import Case, Option, value_sources_of
from retrieval.answers.proposers.compose import Proposal
from retrieval.answers.proposers.grounds import account_in
from retrieval.knowledge.confidence import Scaling
from retrieval.knowledge.rewrites.edit_effects import try_edits
from retrieval.knowledge.rows.principals import SURE, agent_mark, principal_of
from retrieval.knowledge.tool.profile import ParameterProfile, ToolProfile
from retrieval.knowledge.tool.repairs import carries_value


class Strangers:
    """States which proposals for one case rest on what one other principal alone states."""

    def __init__(self, case: Case, message: str, scaling: Scaling) -> None:
        """`message` is that of the error: what it states is no one else's word."""
        self._case = case
        self._message = message
        self._scaling = scaling
        self._alone: dict[bool, dict[str, float]] = {}

    def taught(self, proposal: Proposal) -> bool:
        """Return whether it would not be sure without what another caller states."""
        case = self._case
        if proposal.options and all(
            option.menders and not case.is_distrusted(option.menders) for option in proposal.options
        ):
            return False  # enough made this very repair, any caller that else uses the tool
        of_profile = self._know(proposal)
        speakers = (option.menders | option.reporters for option in proposal.options)
        if not of_profile and not any(map(case.is_distrusted, speakers)):
            return False
        return self._without(profile=not of_profile).get(proposal.key, 0.0) <= SURE

    def alone(self, proposal: Proposal) -> bool:
        """Return whether no one else than another caller states it at all, however unsure."""
        of_profile = self._know(proposal)
        return self.taught(proposal) and proposal.key not in self._without(profile=not of_profile)

    def _know(self, proposal: Proposal) -> bool:
        """Return whether the tool or a new name is known by another caller alone.

        Not with an own schema.
        """
        case, profile = self._case, self._case.profile
        if case.schema is not None and not case.is_foreign_schema:
            return False
        if case.is_foreign_schema or (profile and self._made_most_of(profile)):
            return True
        new = proposal.parameters.keys() - case.parameters.keys()
        seen = (case.observed_values(name) for name in new if name not in self._message)
        return any(self._made_most_of(each) for each in seen if each is not None)

    def _made_most_of(self, seen: ToolProfile | ParameterProfile) -> bool:
        """Return whether few use it, or one other caller may have made half of its successes."""
        made = sum_values((principal_of(agent), count) for agent, count in seen.agents.items())
        if self._case.is_distrusted(made):
            return True
        beyond = seen.successes - sum(made.values())  # of agents that are not counted one by one
        made.pop(principal_of(agent_mark(self._case.agent)), None)
        most = max(made.values(), default=0)
        if len(made) >= 2 * self._case.quorum:
            beyond = 0  # so many principals use it that the sample speaks for the rest
        return self._case.quorum > 1 and most > 0 and 2 * (most + beyond) > seen.successes

    def _without(self, *, profile: bool) -> dict[str, float]:
        if profile not in self._alone:
            found = judge(self._case.without_others(profile=profile), self._scaling)
            self._alone[profile] = {e.proposal.key: e.estimate.probability for e in found}
        return self._alone[profile]


def principals_for(case: Case, proposal: Proposal) -> int:
    """Return how many principals' own repairs made each of the changes that mean something else.

    What one taught about names and structure is enough for its own agents, where it has a key.
    """
    options = proposal.options
    if proposal.reshaped is not None:
        options = options[1:] or options
    else:
        options = tuple(each for each in options if _is_semantic(case, each)) or options
    menders = frozenset.intersection(*(each.menders for each in options))
    own = principal_of(agent_mark(case.agent))
    edits = (edit for option in proposal.options for edit in option.edits)
    if own and own in menders and not any(map(carries_value, edits)):
        return case.quorum
    return len(menders)


def _is_semantic(case: Case, option: Option) -> bool:
    made = try_edits(case.parameters, option.edits, value_sources_of(case))
    return made is None or account_in(case, made).change_class == "semantic"


def trusted_hints(
    stated: ToolAnnotations | None, registered: StoredTool | None, *, binds: bool
) -> ToolAnnotations:
    """Return the hints that the caller has from the live list of tools, or what tightens them.

    A registration may come from any program on the machine, so it never states that a call reads
    only or may be made twice. What another principal registered (not `binds`) counts only that
    the tool destroys.
    """
    if stated is not None:
        return stated
    known = registered.tool.annotations if registered else ToolAnnotations()
    destroys = ToolAnnotations(destructive_hint=known.destructive_hint or None)
    if not binds:
        return destroys
    tightening = {
        name: False
        for name in ("read_only_hint", "idempotent_hint")
        if getattr(known, name) is False
    }
    return destroys.model_copy(update=tightening)


def is_contradicted(schema: JsonObject, profile: ToolProfile | None, quorum: int) -> bool:
    """Return whether a schema that another caller registered refuses what worked for others.

    It needs a parameter without which most calls of several principals worked, or does not take
    one with which they did.
    """
    if profile is None or not profile.successes or quorum < 2:
        return False
    if len({principal_of(agent) for agent in profile.agents}) < quorum:
        return False
    most = profile.successes / 2
    with_it = {name: each.successes for name, each in profile.parameters.items()}
    required = schema.get("required")
    needs = required if isinstance(required, list) else []
    if any(isinstance(name, str) and with_it.get(name, 0) < most for name in needs):
        return True
    known = schema.get("properties")
    if schema.get("additionalProperties") is not False or not isinstance(known, dict):
        return False
    return any(name not in known and count >= most for name, count in with_it.items())


_VALUES = frozenset(("enum", "const", "default", "examples"))


def registered_schema(
    registered: StoredTool | None, *, binds: bool, writes: bool
) -> JsonObject | None:
    """Return the registered schema; for others' writes without the values that it states."""
    schema = registered.tool.input_schema if registered else None
    if schema is None or binds or not writes:
        return schema
    found: JsonObject = _without_values(schema)
    return found


def _without_values(part: Any, values: frozenset[str] = _VALUES) -> Any:
    if isinstance(part, list):
        return [_without_values(each) for each in part]
    if not isinstance(part, dict):
        return part
    # Keys of `properties` are names, whatever they are.
    return {
        key: _without_values(value, frozenset() if key == "properties" and values else _VALUES)
        for key, value in part.items()
        if key not in values
    }
