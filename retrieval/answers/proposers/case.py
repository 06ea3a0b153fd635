"""The case: a failed call with its faults and all that proposals may look at; and their options.

No I/O from here on.

An option is one way to repair one fault, with what speaks for it. `proposers/priors.toml` has how
often each kind of change was right in the benchmark (see `docs/adr`), or a judgement. Next to
options there is *advice*: an action that leaves the parameters as they are.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from aftercall.change_classes import QUORUM
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Action, ContractChange, EvidenceSource, Tool
from retrieval import read_word_table
from retrieval.answers.proposers.faults import faults_of, stated_schema
from retrieval.answers.siblings import Sibling
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rewrites.edits import Add, Edit, Replace, ValueSources, edit_key
from retrieval.knowledge.rows.documents import SeedEntry
from retrieval.knowledge.rows.health import Referred
from retrieval.knowledge.rows.principals import agent_mark, principal_of
from retrieval.knowledge.session.session_calls import EarlierCall
from retrieval.knowledge.tool.links import Links
from retrieval.knowledge.tool.profile import ParameterProfile, ToolProfile
from retrieval.knowledge.tool.rules import SignatureKnowledge, ToolKnowledge
from retrieval.knowledge.tool.runs import RecoveryTimes, Repeats
from retrieval.knowledge.values.parameters import (
    ParameterView,
    Path,
    ToolView,
    object_view,
    view_of_schema,
)


@dataclass(frozen=True, slots=True)
class Case:
    """A failed call with what is known of its tool.

    `session` gives the earlier successes of its session, read when they are wanted. `writes` is
    true unless the tool is known to only read: then no value is added that the schema or a repair
    rule does not give. `profile_is_current` is false when the profile was gathered
    under another schema than `schema`. Where the parameters are not known (`parameters_known`),
    they are empty and show nothing: there are only the faults that the error names.
    """

    parameters: JsonObject
    reading: ErrorReading
    view: ToolView | None = None
    profile: ToolProfile | None = None
    profile_is_current: bool = True
    schema_hash: str | None = None
    signature: SignatureKnowledge | None = None
    like_signatures: tuple[SignatureKnowledge, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    """What repaired such an error on siblings of the tool."""
    elsewhere: Callable[[], SignatureKnowledge | None] = lambda: None
    context: str | None = None
    agent: str = ""
    seeds: tuple[SeedEntry, ...] = ()
    session: Callable[[], Sequence[EarlierCall]] = tuple
    links: Links | None = None
    writes: bool = True
    schema: JsonObject | None = None
    parameters_known: bool = True
    is_text: bool = False
    """Whether the arguments came as a text, and the parameters are the object that it states."""
    is_foreign_schema: bool = False
    """Whether another principal registered the schema: then it only advises."""
    quorum: int = QUORUM
    tool: str = ""
    stated: JsonObject | None = None
    """What the error states, as a schema, where there is no other."""
    whole: JsonObject | None = None
    """The parameters of the whole call, where the case is a part of it."""
    faults: tuple[Fault, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Add the faults that the live schema shows to those of the error."""
        if not self.parameters_known:
            object.__setattr__(self, "faults", self.reading.faults)
            return
        faults = faults_of(self.parameters, self.reading, self.view, self.profile, self.schema)
        object.__setattr__(self, "faults", faults)
        if self.view is None and self.schema is None:
            self._read_view()

    def _read_view(self) -> None:
        """Take what the error states as the view of the tool, where nothing else is known."""
        stated = stated_schema(self.faults, self.parameters)
        if stated is not None:
            object.__setattr__(self, "stated", stated)
            object.__setattr__(self, "view", replace(view_of_schema(stated), source="error"))

    @property
    def knows_tool(self) -> bool:
        """Return whether schema or successes show the tool's parameters, not its error alone."""
        return self.view is not None and self.view.source != "error"

    def is_distrusted(self, principals: Collection[str]) -> bool:
        """Return whether too few principals state something, the caller not among them."""
        own = principal_of(agent_mark(self.agent))
        return 0 < len(principals) < self.quorum and own not in principals

    def without_others(self, *, profile: bool) -> "Case":
        """Return the case without what others taught or registered; the profile may be trusted."""
        kept = self.profile if profile else None
        schema = None if self.is_foreign_schema else self.schema
        return replace(
            self, schema=schema, view=view_of(schema, kept), profile=kept, signature=None,
            like_signatures=(), siblings=(), elsewhere=lambda: None, links=None,
        )  # fmt: skip

    def view_parameter(self, name: str | None) -> ParameterView | None:
        """Return what is known of a parameter."""
        return self.view.parameters.get(name) if self.view and name is not None else None

    def view_object(self, path: Path, value: JsonObject | None = None) -> ToolView | None:
        """Return the schema's view of the object at a path, of several the most like `value`."""
        return None if self.schema is None else object_view(self.schema, path, value or {})

    def observed_values(self, name: str | None) -> ParameterProfile | None:
        """Return what successes and failures showed of a parameter."""
        return self.profile.parameters.get(name) if self.profile and name is not None else None


def profile_for(
    knowledge: ToolKnowledge | None, schema_hash: str | None, agent: str
) -> tuple[ToolProfile | None, bool]:
    """Return the profile to go by for an agent that asks, and whether it is of the live schema.

    That of the live schema; else that of calls without one; else the last one.
    """
    if knowledge is None:
        return None, True
    if schema_hash is not None and (exact := knowledge.find_profile(schema_hash)):
        return exact.seen_by(agent), True
    found = knowledge.find_profile(None) or next(reversed(knowledge.profiles.values()), None)
    return found.seen_by(agent) if found else None, schema_hash is None


def view_of(schema: JsonObject | None, profile: ToolProfile | None) -> ToolView | None:
    """Return what is known of a tool's parameters: by its schema, or else by its successes."""
    if schema is not None:
        return view_of_schema(schema)
    return profile.make_view() if profile and profile.successes else None


def value_sources_of(case: Case) -> ValueSources:
    """Return the sources that an edit may take a value from: faults and context."""
    return ValueSources(case.faults, case.context)


_IN_VAIN = 16.0
"""Pseudo-wrongs of a suggestion that was followed without success, whatever its grounds."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to repair one fault (or several at once)."""

    edits: tuple[Edit, ...]
    reason: str
    trials: Trials
    sources: tuple[EvidenceSource, ...]
    repairs: int = 0
    successes: int = 0
    failures: int = 0
    failed: float = 0.0
    """Reported failures as they weigh now, next to `trials`."""
    execution_ids: tuple[str, ...] = ()
    lesson: str | None = None
    share: str | None = None
    """Of the sessions that met such a call, those that repaired it so: `10 of 10`."""
    covers: frozenset[int] = field(default_factory=frozenset)
    """Indexes of the faults it repairs."""
    menders: frozenset[str] = frozenset()
    """Principals whose own repairs did the same (`retrieval.knowledge.rows.principals`)."""
    reporters: frozenset[str] = frozenset()
    """Principals that reported that it worked."""
    proposer: str = ""
    """Name of the registered proposer that it is of."""

    @property
    def key(self) -> str:
        """Equal for options that do the same."""
        return edit_key(self.edits)

    @property
    def evidence(self) -> Trials:
        """Return what speaks for it and against it in all."""
        return self.trials.add_trials(Trials(0, _IN_VAIN * self.failed))

    @property
    def is_stated(self) -> bool:
        """Return whether error or schema states so, and not only what others did."""
        return not {"error", "schema"}.isdisjoint(self.sources)

    def merge_with(self, other: "Option") -> "Option":
        """Return one option for two that do the same.

        They agree, and the words of who states it stay.

        Agreement never weakens: the other adds half of what speaks for it (the two are not
        independent). That the edits were followed and failed counts against them on any ground.
        """
        surer = self.trials.mean >= other.trials.mean
        first, second = (self, other) if surer else (other, self)
        told = first if first.is_stated or not second.is_stated else second
        rest = second if told is first else first
        return replace(
            told,
            trials=max(
                first.trials.add_trials(Trials(0.5 * second.trials.right, 0)),
                second.trials.add_trials(Trials(0.5 * first.trials.right, 0)),
                key=lambda both: both.mean,  # the better of the two, so that more never counts less
            ),
            failed=max(first.failed, second.failed),
            sources=tuple(dict.fromkeys((*told.sources, *rest.sources))),
            repairs=max(first.repairs, second.repairs),
            successes=max(first.successes, second.successes),
            failures=max(first.failures, second.failures),
            execution_ids=tuple(dict.fromkeys((*first.execution_ids, *second.execution_ids)))[:5],
            lesson=told.lesson or rest.lesson,
            share=first.share or second.share,
            covers=first.covers | second.covers,
            menders=first.menders | second.menders,
            reporters=first.reporters | second.reporters,
        )


def one_edit(
    index: int, edit: Edit, reason: str, trials: Trials, source: EvidenceSource, successes: int = 0
) -> Option:
    """Return an option of one edit that repairs one fault."""
    return Option(
        (edit,), reason, trials, (source,), successes=successes, covers=frozenset({index})
    )


def put(case: Case, name: str, value: JsonValue) -> Add | Replace:
    """Return the edit that gives a parameter this value, whether or not it is there."""
    if name in case.parameters:
        return Replace(name=name, before=case.parameters[name], value=value)
    return Add(name=name, value=value)


def read_option(case: Case) -> Option | None:
    """Return the object that the text of the arguments states, where they came as a text."""
    if not (case.is_text and case.parameters_known):
        return None
    reason = "the arguments came as a text, and are an object"
    lesson = "Send the arguments as an object, not as a text."
    return Option((), reason, prior_trials("shape.text"), ("parameters",), lesson=lesson)


_PRIORS = read_word_table("answers/proposers/priors.toml")


def prior_trials(kind: str, judged: tuple[float, float] | None = None) -> Trials:
    """Return the counts that a kind of change begins with, as `priors.toml` has them.

    Args:
        kind: a stable name, such as `rename.like`; outcomes are counted under it.
        judged: right and wrong of a kind that the table lacks, such as a researcher's own.

    Raises:
        KeyError: the table lacks the kind, and nothing is judged.
    """
    counted = _PRIORS["measured"].get(kind) or _PRIORS["judged"].get(kind) or judged
    if counted is None:
        raise KeyError(f"{kind!r} has no prior: add it to retrieval/answers/proposers/priors.toml")
    return Trials(float(counted[0]), float(counted[1]), kind=kind)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Another registered tool, with what is known of its calls.

    `similarity` is the cosine of its nearest success to the failed call, None without one;
    `sessions` are distinct ones; a few of them are remembered.
    """

    tool: Tool
    similarity: float | None = None
    successes: int = 0
    failures: int = 0
    sessions: int = 0
    execution_ids: tuple[str, ...] = ()
    principals: frozenset[str] = frozenset()
    """Who registered it, or had success with it."""


class StatedFirst(NamedTuple):
    """A tool to call first, and the parameters that it must be given, as far as known.

    `said_by` states who names it: the error, or the schema.
    """

    tool_name: str
    required: frozenset[str] = frozenset()
    said_by: str = "The error"


class LookFirst(NamedTuple):
    """No one knows whether a call that writes had its effect; a tool that shows it, if known."""

    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a failed call stands. All may be left out; then the advice goes by the error alone.

    Without `now`, moments that an error names are not read. `attempt` is 1 for the first try;
    `recoveries` has the tool's before the workspace's; `others` are registered tools of the
    workspace, gathered only where they can matter, as are `referrals`, the tool's latest, oldest
    first; `may_show` states whether a value of a parameter is open today: what was learned may be
    older; `stated_first` is what the error asks to call before, `look_first` what shows whether the
    call had its effect, where that is unknown.
    """

    now: datetime | None = None
    tool_name: str = ""
    namespace: str | None = None
    server_name: str | None = None
    attempt: int = 1
    repeats: Repeats = field(default_factory=Repeats)
    recoveries: tuple[RecoveryTimes, ...] = ()
    others: tuple[Candidate, ...] = ()
    may_show: Callable[[str, JsonValue], bool] = lambda _name, _value: True
    referrals: tuple[Referred, ...] = ()
    stated_first: StatedFirst | None = None
    look_first: LookFirst | None = None
    contract_changes: tuple[ContractChange, ...] = ()


PLAIN = CallContext()
"""Nothing is known next to the case."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One action that leaves the parameters as they are.

    `yields` states that a repair which was learned for this very error stands next to it, the surer
    first; all other advice stands alone. `successes` and `failures` are calls of `tool`; `split` is
    as in `wire.Suggestion`.
    """

    action: Action
    trials: Trials
    lesson: str
    retry_after_ms: float | None = None
    tool: str | None = None
    parameters: JsonObject | None = None
    successes: int = 0
    failures: int = 0
    execution_ids: tuple[str, ...] = ()
    yields: bool = False
    split: tuple[str, ...] = ()
    is_strange: bool = False
    """Whether one other principal alone states so (`Case.is_distrusted`)."""
    is_lookup: bool = False
    """Whether it is where a value comes from: every change of parameters stands next to it."""


@dataclass(frozen=True, slots=True)
class NoAdvice:
    """Nothing can be advised, and no change of parameters would repair it either.

    With `yields`, one that was learned for this very error may.
    """

    reason: str
    yields: bool = False


_MAX = 120
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def quote_json(value: JsonValue) -> str:
    """Return a value as JSON on one line, cut; control and direction marks are blanks."""
    if isinstance(value, str):
        value = " ".join(_CONTROL.sub(" ", value[: 4 * _MAX]).split())
        value = value if len(value) <= _MAX else f"{value[:_MAX]}..."
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX + 5 else f"{text[:_MAX]}..."
