"""What is known of one tool: profiles by schema, and by signature the repair rules that worked.

Value objects that are stored as JSON; updated by ingest, only read by the answers.

What is reported of a rule is kept by agent, under a hash of its name, each counted up to a cap, and
is forgotten by contradiction: with k the factor of one report (half-life: two reports), a failure
takes what its agent stated for the rule times k, a success what it stated against it times k. Over
all agents

    right = min(most, sum of what each states for it) * k ** doubt
    wrong = sum of what each states against it * k ** (others that saw it work since)
    doubt = sum over the agents whose last word was a failure of k ** (others ... since)

so agreeing reports only ever add up, the repeated failures of one agent count as a single doubt,
and each further agent that reports a failure adds its own. (Beta reputation with a longevity
factor, Josang and Ismail 2002, applied to contradicting reports only, with a cap per rater.)
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from pydantic import BaseModel, Field, PrivateAttr

from aftercall.models import ErrorCategory, Outcome
from aftercall.tables import keep_latest
from mongo.records import ToolKey
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rewrites import edits as ed
from retrieval.knowledge.rewrites.edits import Edit, Respell, changed_places, edit_key
from retrieval.knowledge.rows.principals import (
    OF_A_STRANGER,
    agent_mark,
    is_one_stranger,
    make_room,
    principal_of,
    remember_mark,
)
from retrieval.knowledge.tool.examples import (
    MAX_EXAMPLES,
    CommonChange,
    RepairExample,
    common_changes,
)
from retrieval.knowledge.tool.links import FirstCall, Links
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.tool.repairs import (
    DifferencesOf,
    LearnedRepair,
    common_repairs,
    differences_of,
)
from retrieval.knowledge.tool.runs import RecoveryTimes, Run
from retrieval.knowledge.values.parameters import written_place

HALF_LIFE = 2.0
"""Contradicting reports after which what was stated before weighs half."""
_KEPT = 2.0 ** (-1 / HALF_LIFE)
MOST_OF_ONE_AGENT = 4
"""Repairs (of distinct sessions) and successes of one agent that count."""
_HEARD_AGAIN = 0.5
"""At a further failure an agent's earlier ones are halved: they never add up to more than 2."""
MOST_REPAIRS = 10
MOST_SUCCESSES = 12
"""So many count at most: a wrong suggestion that succeeds would else make itself sure."""
MAX_AGENTS_HEARD = 8
"""Enough for all that counts (`MOST_REPAIRS`); a tool may have some thousand rules."""
UNNAMED_AGENT = ""
"""The agent of reports that name none; they share one cap."""


def workspace_wide(workspace: str) -> ToolKey:
    """Return the key of what is known about all tools; no client can name a tool so."""
    return ToolKey(workspace, None, "")


class EvidenceWeight(NamedTuple):
    """Repairs, reported successes and reported failures as they weigh now."""

    repairs: float = 0.0
    successes: float = 0.0
    failures: float = 0.0


@dataclass(slots=True)
class AgentEvidence:
    """What one agent reports of a rule, and which of all reports were its last of either kind."""

    repairs: float = 0.0
    mended: int = 0
    successes: float = 0.0
    failures: float = 0.0
    sessions: list[str] = field(default_factory=list)
    worked_at: int = 0
    failed_at: int = 0

    def add_agreement(self, at: int) -> None:
        """It saw the rule work."""
        self.failures *= _KEPT
        self.worked_at = at


@dataclass(slots=True)
class RuleEvidence:
    """All that is reported of a rule, bounded: the agents that were received last."""

    by_agent: dict[str, AgentEvidence] = field(default_factory=dict)
    reports: int = 0
    otherwise: dict[str, int] = field(default_factory=dict)
    """By agent, the failures that it repaired by something else, though the edits applied."""

    def add_repair(self, agent: str, session: str, weight: float = 1.0) -> None:
        """Note that an agent repaired a failure so; a session counts once."""
        self.repaired_by(agent_mark(agent), session, weight)

    def repaired_by(self, mark: str, session: str, weight: float = 1.0) -> None:
        """Note a repair by an agent that is known by its mark."""
        heard = self._agent_evidence(mark)
        if session in heard.sessions:
            return
        heard.add_agreement(self.reports)
        heard.sessions = [*heard.sessions, session][-MOST_OF_ONE_AGENT:]
        heard.mended += 1
        heard.repairs = min(heard.repairs + weight, MOST_OF_ONE_AGENT)

    def add_report(self, agent: str, outcome: Outcome) -> None:
        """Note the outcome of a suggestion of these edits that an agent followed."""
        heard = self._agent_evidence(agent_mark(agent))
        if outcome == "failure":
            heard.repairs *= _KEPT
            heard.successes *= _KEPT
            heard.failures = _HEARD_AGAIN * heard.failures + 1
            heard.failed_at = self.reports
        else:
            heard.add_agreement(self.reports)
            heard.successes = min(heard.successes + 1, MOST_OF_ONE_AGENT)

    def mended_otherwise(self, agent: str) -> None:
        """Note that an agent repaired such a failure by something else."""
        key = agent_mark(agent)
        make_room(self.otherwise, key, MAX_AGENTS_HEARD, lambda each: self.otherwise[each])
        self.otherwise[key] = self.otherwise.get(key, 0) + 1

    def count_doubts(self) -> float:
        """Repairs that speak against it, as those in `weight` speak for it.

        An agent's count is scaled down as its repairs are by their cap, and is never above the cap.
        Where there are several principals, the cap is one of each principal.
        """
        said: dict[str, float] = {}
        capped_as = self._capped_as()
        for key, count in self.otherwise.items():
            mended = self.by_agent[key].mended if key in self.by_agent else 0
            share = min(1.0, MOST_OF_ONE_AGENT / max(1, mended))
            whose = capped_as(key)
            said[whose] = said.get(whose, 0.0) + min(MOST_OF_ONE_AGENT, count * share)
        if is_one_stranger(map(principal_of, self.otherwise), self._confirming_principals()):
            return OF_A_STRANGER
        return sum(min(MOST_OF_ONE_AGENT, each) for each in said.values())

    def _confirming_principals(self) -> set[str]:
        """Return the principals for whom it worked."""
        heard = self.by_agent.items()
        return {principal_of(mark) for mark, each in heard if each.mended or each.successes > 0}

    def failure_principals(self) -> frozenset[str]:
        """Return the principals that reported a failure."""
        heard = self.by_agent.items()
        return frozenset(principal_of(mark) for mark, each in heard if each.failures > 0)

    def _capped_as(self) -> Callable[[str], str]:
        """Return the owner of an agent's cap: itself, or its principal among several."""
        principals = {principal_of(each) for each in (*self.by_agent, *self.otherwise)}
        if len(principals) > 1:
            return principal_of
        return str

    def success_principals(self) -> frozenset[str]:
        """Return the principals that reported a success."""
        heard = self.by_agent.items()
        return frozenset(principal_of(mark) for mark, each in heard if each.successes > 0)

    def evidence_weight(self) -> EvidenceWeight:
        """Return what all reports come to.

        Agents of one principal are as one where there are several.
        """
        said: dict[str, list[tuple[float, float, float, float]]] = {}
        capped_as = self._capped_as()
        worked = sorted(each.worked_at for each in self.by_agent.values())
        for key, heard in self.by_agent.items():
            since = len(worked) - bisect_right(worked, heard.failed_at)
            doubts = heard.failed_at > heard.worked_at
            kept = _KEPT ** (since if doubts else max(0, since - 1))  # its own is no other's word
            word = heard.repairs, heard.successes, heard.failures * kept, doubts * kept
            said.setdefault(capped_as(key), []).append(word)
        repairs = successes = failures = doubt = 0.0
        for words in said.values():
            right, ran, wrong, doubted = zip(*words, strict=True)
            repairs += min(MOST_OF_ONE_AGENT, sum(right))
            successes += min(MOST_OF_ONE_AGENT, sum(ran))
            failures += max(wrong)
            doubt += max(doubted)
        if is_one_stranger(self.failure_principals(), self._confirming_principals()):
            failures = failures * OF_A_STRANGER
            doubt = doubt * OF_A_STRANGER
        kept = _KEPT**doubt
        return EvidenceWeight(
            min(repairs, MOST_REPAIRS) * kept, min(successes, MOST_SUCCESSES) * kept, failures
        )

    def _agent_evidence(self, key: str) -> AgentEvidence:
        known = self.by_agent
        last = {each: max(heard.worked_at, heard.failed_at) for each, heard in known.items()}
        make_room(known, key, MAX_AGENTS_HEARD, last.__getitem__)
        self.reports += 1
        return self.by_agent.setdefault(key, AgentEvidence())


MAX_PROFILES = 4
"""Schema versions remembered; older ones are forgotten, oldest first."""
MAX_SIGNATURES = 200
MAX_RULES = 20
MAX_FAULTS = 16
MAX_NAMES = 12
MAX_EDITS_LENGTH = 1_000
"""Characters of a rule's key. A longer repair is text rewritten, which repairs no other call."""
NO_SCHEMA = ""


@dataclass(slots=True)
class RepairRule:
    """The same edits, made to repair the same signature, with what became of them."""

    edits: list[Edit]
    repairs: int = 0
    successes: int = 0
    """Suggestions of these edits that were reported to have worked."""
    failures: int = 0
    """Suggestions of these edits that were reported to have failed."""
    schema_hashes: list[str] = field(default_factory=list)
    """Schemas under which it was seen to repair; `NO_SCHEMA` where none was known."""
    sessions: list[str] = field(default_factory=list)
    execution_ids: list[str] = field(default_factory=list)
    last_seen: datetime | None = None
    heard_at: int = 0
    """Its place in the order in which something was stated last of its signature's rules."""
    evidence: RuleEvidence = field(default_factory=RuleEvidence)

    def keep_priority(self) -> tuple[float, int]:
        """Return how much it is worth keeping.

        A reported failure counts twice, then what is newer.
        """
        weight = self.evidence_weight()
        return sum(weight) + weight.failures, self.heard_at

    def add_repair(self, agent: str, session: str, weight: float = 1.0) -> None:
        """Count a mined repair; `weight` (0 to 1) is how sure it is that it was one."""
        self.repairs += 1
        remember_mark(self.sessions, session, MAX_NAMES)
        self.evidence.add_repair(agent, session, weight)

    def add_report(self, agent: str, outcome: Outcome) -> None:
        """Count what became of a suggestion."""
        self.successes += outcome == "success"
        self.failures += outcome == "failure"
        self.evidence.add_report(agent, outcome)

    def evidence_weight(self) -> EvidenceWeight:
        """Return what speaks for and against it, each agent's word up to its cap."""
        return self.evidence.evidence_weight()

    def repair_agents(self) -> list[str]:
        """Return the marks of the agents that repaired a failure so, as far as remembered."""
        return [mark for mark, each in self.evidence.by_agent.items() if each.repairs > 0]


class SignatureKnowledge(BaseModel):
    """One kind of failure of one tool."""

    signature: str
    category: ErrorCategory
    count: int = 0
    agents: list[str] = Field(default_factory=list)
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    rules: dict[str, RepairRule] = Field(default_factory=dict)
    mends: int = 0
    faults: dict[str, FaultKind] = Field(default_factory=dict)
    """Its skeleton: what was wrong, by place; the last reading's."""
    examples: list[RepairExample] = Field(default_factory=list)
    passed: list[str] = Field(default_factory=list)
    """Sessions in which the same call worked later, though the failure was none of the moment."""
    first_calls: dict[str, FirstCall] = Field(default_factory=dict)
    """What these called in between, by the tool's name."""
    off: list[list[str]] = Field(default_factory=list)
    """What is not to be changed, by `changed_places`: such edits are learned of, and not shown."""
    _changes: tuple[list[str], list[CommonChange]] | None = PrivateAttr(None)
    _differences: tuple[list[str], DifferencesOf] | None = PrivateAttr(None)
    _repairs: tuple[list[str], list[LearnedRepair]] | None = PrivateAttr(None)

    def find_common_changes(self) -> list[CommonChange]:
        """Return what the examples have in common; kept until there is another one."""
        ids = [each.execution_id for each in self.examples]
        if self._changes is None or self._changes[0] != ids:
            self._changes = ids, common_changes(self.examples)
        return self._changes[1]

    def find_differences(self) -> DifferencesOf:
        """Return what gives the differences of each example; kept as common changes are."""
        ids = [each.execution_id for each in self.examples]
        if self._differences is None or self._differences[0] != ids:
            self._differences = ids, differences_of(list(self.examples))
        return self._differences[1]

    def learned_repairs(self) -> list[LearnedRepair]:
        """Return what several repaired alike, for everyone's ears; kept as `changes` are."""
        ids = [each.execution_id for each in self.examples]
        if self._repairs is None or self._repairs[0] != ids:
            self._repairs = ids, common_repairs(self.examples, self.find_common_changes())
        return [each for each in self._repairs[1] if not self.is_off(each.edits)]

    def is_off(self, edits: Sequence[Edit]) -> bool:
        """Return whether someone switched such a change off, in this form or in another."""
        return bool(self.off) and any(changed_places(edits).issuperset(each) for each in self.off)

    def told_rules(self) -> list[tuple[RepairRule, str | None]]:
        """Return what is learned and the rules, each edits once, with the share of the sessions."""
        learned = {}
        for repair in self.learned_repairs():
            rule = RepairRule(
                edits=list(repair.edits),
                repairs=repair.sessions,
                execution_ids=list(repair.execution_ids),
                last_seen=max(each.at for each in repair.mended),
            )
            for each in repair.mended:
                remember_mark(rule.sessions, each.session, MAX_NAMES)
                rule.evidence.repaired_by(each.agent, each.session)
            learned[edit_key(repair.edits)] = rule, repair.share
        others = (
            (rule, None)
            for key, rule in self.rules.items()
            if key not in learned and not self.is_off(rule.edits)
        )
        return [*learned.values(), *others]

    def rule_to_update(self, edits: list[Edit]) -> RepairRule:
        """Return the rule of these edits, made when it is new instead of the weakest."""
        key = edit_key(edits)
        if key not in self.rules and len(self.rules) >= MAX_RULES:
            del self.rules[min(self.rules, key=lambda k: self.rules[k].keep_priority())]
        rule = self.rules.setdefault(key, RepairRule(edits=edits))
        rule.heard_at = 1 + max(each.heard_at for each in self.rules.values())
        # A `Respell` applies to nearly any text: all earlier other repairs speak against it.
        if not rule.repairs and any(isinstance(edit, Respell) for edit in edits):
            rule.evidence.otherwise[UNNAMED_AGENT] = self.mends
        return rule


class ToolKnowledge(BaseModel):
    """All that is known of one tool."""

    profiles: dict[str, ToolProfile] = Field(default_factory=dict)
    """By schema hash; `NO_SCHEMA` for calls whose schema is not known."""
    signatures: dict[str, SignatureKnowledge] = Field(default_factory=dict)
    recoveries: dict[ErrorCategory, RecoveryTimes] = Field(default_factory=dict)
    """How long transient failures lasted (see `retrieval.knowledge.tool.runs`)."""
    links: Links = Field(default_factory=Links)
    """Where its parameters' values come from in a session."""
    _elsewhere: dict[str | None, SignatureKnowledge] = PrivateAttr(default_factory=dict)
    runs: dict[str, Run] = Field(default_factory=dict)
    """Calls that keep failing with the same error (see `retrieval.knowledge.tool.runs`)."""

    def find_profile(self, schema_hash: str | None) -> ToolProfile | None:
        """Return the profile of a schema version, if there is one."""
        return self.profiles.get(schema_hash or NO_SCHEMA)

    def profile_to_update(self, schema_hash: str | None) -> ToolProfile:
        """Return the profile of a schema version, made when it is new and moved to the newest."""
        key = schema_hash or NO_SCHEMA
        return keep_latest(
            self.profiles, key, self.profiles.get(key) or ToolProfile(), MAX_PROFILES
        )

    def find_signature(self, text: str) -> SignatureKnowledge | None:
        """Return what is known of a kind of failure."""
        return self.signatures.get(signature_id(text))

    def similar_signatures(
        self, known: str, faults: dict[str, FaultKind]
    ) -> list[SignatureKnowledge]:
        """Return other kinds of failure than the known one: the same was wrong at the same places.

        Not those of errors that say of no place what is wrong: these are alike in nothing.
        """
        return [
            each
            for each in self.signatures.values()
            if faults
            and (each.rules or each.examples)
            and each.faults == faults
            and each.signature != known
        ]

    def other_repairs(self, known: str) -> SignatureKnowledge:
        """Return the latest repair of each other kind of failure, as if they were of one.

        So a repair is counted that was the same whatever the words of the error were. The result is
        kept: code that learns never calls this, and code that calls it never learns.
        """
        kind = known if self.find_signature(known) else None  # unknown ones leave nothing out
        if kind not in self._elsewhere:
            own = (
                [e for e in each.examples if not e.followed and not each.is_off(e.edits)]
                for each in self.signatures.values()
                if each.signature != kind
            )
            others = [examples[-1] for examples in own if examples]
            latest = sorted(others, key=lambda each: (each.at, each.execution_id))[-MAX_EXAMPLES:]
            self._elsewhere[kind] = SignatureKnowledge(
                signature="", category="unknown", examples=latest
            )
        return self._elsewhere[kind]

    def signature_to_update(self, text: str, category: ErrorCategory) -> SignatureKnowledge:
        """Return what is known of a kind of failure, made when it is new.

        Beyond `MAX_SIGNATURES`, the one that was updated least recently is dropped.
        """
        key = signature_id(text)
        known = self.signatures.get(key) or SignatureKnowledge(signature=text, category=category)
        return keep_latest(self.signatures, key, known, MAX_SIGNATURES)


def skeleton_of(reading: ErrorReading) -> dict[str, FaultKind]:
    """Return what an error states is wrong, by place (`flights[].date`).

    Without values and words.
    """
    return {
        written_place(fault.path): fault.kind for fault in reading.faults[:MAX_FAULTS] if fault.path
    }


def signature_id(text: str) -> str:
    """Return a short stable key of a signature: 16 hexadecimal digits of its SHA-256."""
    return sha256(text.encode()).hexdigest()[:16]


def remember_name(names: list[str], name: str, limit: int = MAX_NAMES) -> None:
    """Add a name to a bounded list of distinct ones, newest last, in place."""
    if name in names:
        return
    names.append(name)
    del names[:-limit]


MENDED = 6.0
"""Pseudo-rights of a mined repair: the agent itself chose that edit, and it worked."""
WORKED = 1.0
"""Of a reported success; less, since to succeed is weak evidence of right."""
_PER_FAILURE = 4.0
_UNPROVEN = 3.0
"""Pseudo-wrongs of edits that no agent made by itself: that they ran is weak evidence of right."""
_VAGUE = 10.0
"""Pseudo-wrongs of an edit that nearly every text takes: that it could be made states little."""


def rule_trials(rule: RepairRule) -> Trials:
    """Return the evidence of a rule, each agent's word up to its cap (see the head)."""
    trials = _repair_trials(rule)
    return replace(trials, wrong=trials.wrong + _PER_FAILURE * rule.evidence_weight().failures)


def _repair_trials(rule: RepairRule) -> Trials:
    """Return the evidence but for reported failures.

    A failure that was repaired otherwise, though the rule applied, counts against it as much as one
    that it repaired counts for it.
    """
    evidence = rule.evidence_weight()
    right = 1 + MENDED * evidence.repairs + WORKED * evidence.successes
    vague = _VAGUE if any(isinstance(edit, ed.Respell) for edit in rule.edits) else 0
    unproven = _UNPROVEN if evidence.repairs == 0 else 0
    return Trials(right, 1 + unproven + vague + MENDED * rule.evidence.count_doubts())
