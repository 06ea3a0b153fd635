"""Confidence: how likely a proposal does what the caller meant, as a calibrated probability.

Logistic regression (Platt 1999, with several features instead of one) over the log-odds of the Beta
means of a proposal's options. Its weights and the Beta priors by kind of edit are fitted on the
project's own benchmark history. A workspace with enough outcomes of its own gets a second,
two-parameter Platt scaling on top (see `retrieval.fitting`). Both have a positive slope, and
evidence moves nothing else of a proposal's own, so that confidence is monotone in evidence.

A proposal must fit the schema and the error, and must not be known to fail. Schema, error and
parameters are all the caller's, so that checking them is bounded: a large schema is not checked,
nothing is fetched, and regular expressions run on an engine that cannot backtrack.

What comes out is then judged by the whole call as well (`retrieval.proposals.audit`), which holds
for kinds of mistakes that nobody foresaw.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from itertools import accumulate, chain
from math import exp, inf, log, prod, sqrt
from typing import Any, NamedTuple

import jsonschema_rs
from pydantic import BaseModel, Field

from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.redaction import is_redacted
from retrieval import read_json
from retrieval.edits import Add, FromContext, Replace
from retrieval.likeness import nearest
from retrieval.parameters import MAX_SCHEMA, leaves_like, resolve, value_at
from retrieval.principals import SURE
from retrieval.proposals.audit import AUDITED, audit, shipped_trees
from retrieval.proposals.case import Case, Option, Trials
from retrieval.proposals.compose import Proposal, propose
from retrieval.proposals.doubts import left_of_confidence
from retrieval.reading.faults import Fault
from retrieval.texts import format_of, is_number

_MAX_PARAMETERS = 100_000
"""Characters of parameters that are held against a schema."""
_MAX_STEPS = 5_000_000
"""Parts of a schema times characters: at most some 25 ms, whatever the schema says."""
_MAX_EXPLAINED = 100_000
"""The same where errors are told one by one, each with those of all alternatives: ten times slower
and more."""
_MAX_ERRORS = 50
_MAX_PARTS = 5_000
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=100_000)


def accepts(case: Case, proposal: Proposal, check: "SchemaCheck | None") -> bool:
    """Whether a proposal is not known to fail, and fits the error and the check of the schema."""
    parameters = proposal.parameters
    known = case.profile if case.profile_is_current else None
    if known and known.is_known_to_fail(parameters):
        return False
    # What the schema only words, as examples may be, rules out nothing that several mended so.
    learned = any(option.share for option in proposal.options)
    faults = (fault for fault in case.faults if not (learned and fault.from_schema))
    if any(_contradicts(fault, case.parameters, parameters) for fault in faults):
        return False
    return check is None or fits_schema(check, parameters)


class SchemaCheck(NamedTuple):
    """A schema's validator, and how many parts the schema has."""

    validator: jsonschema_rs.Validator
    parts: int


def fits_schema(check: SchemaCheck, parameters: JsonObject) -> bool:
    """Whether nothing is wrong but with masked values, which the caller has in full."""
    characters = len(canonical_json(parameters))
    if characters > _MAX_PARAMETERS or check.parts * characters > _MAX_STEPS:
        return True
    if check.validator.is_valid(parameters):
        return True
    if not is_redacted(parameters):
        return False
    if check.parts * characters > _MAX_EXPLAINED:
        return True
    for seen, error in enumerate(check.validator.iter_errors(parameters)):
        top = error.instance_path[0] if error.instance_path else None
        value = parameters.get(top) if isinstance(top, str) else None
        if value is None or not is_redacted(value):
            return False
        if seen >= _MAX_ERRORS:
            break
    return True


def _contradicts(fault: Fault, before: JsonObject, after: JsonObject) -> bool:
    name = fault.parameter
    if name is None or len(fault.path) > 1:
        return False
    if name not in after:
        return fault.kind == "missing" and name in before
    if name not in before:
        return fault.kind == "unexpected"
    value = after[name]
    if same_json(before[name], value):
        return False
    if fault.kind == "not_allowed" and fault.allowed:
        return str(value) not in map(str, fault.allowed)
    low = -inf if fault.minimum is None else fault.minimum
    high = inf if fault.maximum is None else fault.maximum
    is_amount = fault.kind == "out_of_range" and not fault.of_length
    return is_amount and is_number(value) and not low <= value <= high


def check_of(schema: JsonObject) -> SchemaCheck | None:
    """Checks parameters by a schema; None where it is broken, or too large to check."""
    canonical = canonical_json(schema)
    return _check(canonical) if len(canonical) <= MAX_SCHEMA else None


@lru_cache(maxsize=512)
def _check(canonical: str) -> SchemaCheck | None:
    schema = json.loads(canonical)
    try:
        parts = _count(schema, schema, {})
        return SchemaCheck(
            jsonschema_rs.validator_for(schema, retriever=_refused, pattern_options=_PATTERNS),
            parts,
        )
    except (ValueError, RecursionError):  # what the library raises for schemas are ValueErrors
        return None


def _count(part: JsonValue, root: JsonObject, known: dict[str, int | None]) -> int:
    """The parts of a schema with its references written out, which bounds the work per value."""
    if isinstance(part, list):
        total = sum(_count(each, root, known) for each in part)
    elif isinstance(part, dict):
        total = 1 + sum(
            _count_reference(value, root, known) if key.endswith("Ref") or key == "$ref"
            else _count(value, root, known)
            for key, value in part.items()
        )  # fmt: skip
    else:
        return 0
    if total > _MAX_PARTS:
        raise ValueError("the schema branches too often")
    return total


def _count_reference(ref: JsonValue, root: JsonObject, known: dict[str, int | None]) -> int:
    if not isinstance(ref, str):
        return 0
    if ref not in known:
        known[ref] = None
        known[ref] = _count(resolve({"$ref": ref}, root), root, known)
    counted = known[ref]
    if counted is None:
        raise ValueError("the schema refers to itself")
    return counted


def _refused(uri: str) -> Any:
    raise ValueError(f"{uri[:200]} is another document, and nothing is fetched")


FEATURES = (
    "likelihood",
    "rivals",
    "uncovered",
    "options",
    "strange",
    "no_schema",
    "blind",
    "new_value_in_write",
    "of_others",
    "lost",
    "unusual",
    "unlikely",
)
"""The order of the vector that `features_of` gives."""

_Z = 1.645
"""Of the two-sided 90 % interval."""
_LIKELY = 1.0
"""Log-odds of a likelihood below which every step down makes a proposal less sure than above."""
_LEAST = 0.005
_FEW = 3
"""Successes below which a profile says nothing of what is usual."""


def lower_bound(trials: Trials, deviations: float = 1.0) -> float:
    """The Beta mean less so many standard deviations, in [0, 1]; higher is more likely right."""
    total = trials.right + trials.wrong
    deviation = sqrt(trials.right * trials.wrong / (total**2 * (total + 1)))
    return max(0.0, trials.mean - deviations * deviation)


def likelihood(proposal: Proposal) -> float:
    """The probability, in (0, 1), that all options are right: the product of their Beta means."""
    return min(1 - _LEAST, max(_LEAST, prod(option.evidence.mean for option in proposal.options)))


def features_of(
    case: Case, proposal: Proposal, own: float, others: Iterable[float]
) -> tuple[float, ...]:
    """The `FEATURES` of a proposal, of its likelihood and that of the others for the case."""
    case = proposal.reshaped or case
    covered = frozenset(index for option in proposal.options for index in option.covers)
    uncovered = sum(
        index not in covered and fault.kind != "invalid" for index, fault in enumerate(case.faults)
    )
    edits = [edit for option in proposal.options for edit in option.edits]
    new_value = any(isinstance(edit, Add | Replace) for edit in edits)
    rival = max(others, default=0.0)
    odds = log(own / (1 - own))
    return (
        odds,
        log(own / (own + rival)),
        float(min(uncovered, 3)),
        float(min(len(proposal.options) - 1, 3)),
        float(min(_strange(case, proposal), 3)),
        float(case.schema is None),
        float(not case.knows_tool),
        float(case.writes and new_value),
        float(any(map(_is_of_others, proposal.options))),
        float(min(_lost(case, proposal), 3)),
        float(min(_unusual(case, proposal), 3)),
        min(0.0, odds - _LIKELY),
    )


_EVEN = 0.5
_FOUND = frozenset(("session", "context", "profile", "similar", "repairs"))


def bound(proposal: Proposal) -> float:
    """What a confidence is at most, in (0, 1].

    A value that neither call nor tool says, but session, context or others' calls, is no surer than
    the low end of what the record of where it comes from says.
    """
    found = (
        option.evidence
        for option in proposal.options
        if _FOUND.issuperset(option.sources) and _puts_anew(option)
    )
    # Of a record that makes nothing likely it is the mean, which promises little.
    return min((max(lower_bound(each, _Z), min(each.mean, _EVEN)) for each in found), default=1.0)


def _puts_anew(option: Option) -> bool:
    """Whether a value is put in that is neither nearly what was sent nor learned for it."""
    return any(isinstance(edit, Add | FromContext) for edit in option.edits) or (
        ((option.repairs == 1 and option.share is None) or "repairs" not in option.sources)
        and any(isinstance(edit, Replace) and not _is_like(edit) for edit in option.edits)
    )


def _is_like(edit: Replace) -> bool:
    texts = isinstance(edit.before, str) and isinstance(edit.value, str)
    near = nearest(str(edit.before), [str(edit.value)]) if texts else None
    # One that goes on or ends before is another one.
    return near is not None and near[1] in ("same", "slip")


_OF_OTHERS = frozenset(("profile", "repairs", "similar", "parameters"))
_SEEN_ENOUGH = 5
"""Texts of successes from which on a form that none of them has is unlike all that was seen."""


def _is_of_others(option: Option) -> bool:
    """Whether an option puts in a value that only others' calls have."""
    puts = any(isinstance(edit, Add | Replace) for edit in option.edits)
    return puts and "profile" in option.sources and _OF_OTHERS.issuperset(option.sources)


def _lost(case: Case, proposal: Proposal) -> int:
    """How many values of the call the repaired one does not hold; a number for one is kept."""
    kept = {str(value) for _, value in leaves_like(proposal.parameters, ())}
    return sum(
        not any(str(value) in each for each in kept)
        and value not in (None, "", False)
        and not (is_number(value) and is_number(value_at(proposal.parameters, path)))
        for path, value in leaves_like(case.parameters, ())
    )


def _unusual(case: Case, proposal: Proposal) -> int:
    """How many texts of the repaired call have a form that none of many successes had there."""
    found = 0
    for name, value in proposal.parameters.items():
        formats = seen.formats if (seen := case.seen(name)) else {}
        if isinstance(value, str) and sum(formats.values()) >= _SEEN_ENOUGH:
            view = case.parameter(name)
            found += format_of(value) not in formats and not (view and view.states(value))
    return found


def _strange(case: Case, proposal: Proposal) -> int:
    """How many names the result has that no success had, or has not that all had."""
    view = case.view
    few = case.profile is None or case.profile.successes < _FEW
    if view is None or not case.knows_tool or (view.source == "profile" and few):
        return 0
    return len(view.unknown(proposal.parameters)) + len(view.missing(proposal.parameters))


ENOUGH_OUTCOMES = 50
"""Outcomes, weighed, below which a workspace keeps the shipped calibration."""


class Estimate(NamedTuple):
    """A probability of right, its 90 % interval, and `shipped`, before scaling; all in [0, 1]."""

    probability: float
    low: float
    high: float
    shipped: float

    def moved_to(self, shipped: float) -> "Estimate":
        """The same, each of its log-odds moved by as much as brings `shipped` there."""
        by = log_odds(shipped) - log_odds(self.shipped)
        return Estimate(*(logistic(log_odds(each) + by) for each in self))

    def times(self, factor: float) -> "Estimate":
        """The same, each of its numbers so much smaller: what was less likely stays so."""
        return Estimate(*(factor * each for each in self))


class Scaling(BaseModel):
    """A workspace's own Platt scaling of the shipped probability."""

    shift: float = 0.0
    slope: float = Field(default=1.0, gt=0)
    outcomes: int = 0
    """How many outcomes it was fitted on; 0 for none of its own."""
    fitted_at: datetime | None = None

    def score(self, score: float) -> float:
        """Log-odds from log-odds."""
        return self.shift + self.slope * score


class Calibration(BaseModel):
    """The fitted weights, and the workspace's own scaling."""

    intercept: float = 0.0
    """What has no rival and leaves nothing open is surer than the mean of its kind."""
    weights: dict[str, float] = Field(default_factory=lambda: {"likelihood": 1.0})
    scaling: Scaling = Field(default_factory=Scaling)

    def _score(self, features: tuple[float, ...]) -> float:
        return self.intercept + sum(
            self.weights.get(name, 0.0) * value
            for name, value in zip(FEATURES, features, strict=True)
        )

    def probability(self, features: tuple[float, ...]) -> float:
        """The probability of these features, as shipped."""
        return logistic(self._score(features))

    def estimate(self, features: tuple[float, ...], proposal: Proposal) -> Estimate:
        """The probability that a proposal is right, its interval by the delta method."""
        score = self._score(features)
        spread = _Z * self.weights["likelihood"] * _deviation(proposal)
        own = self.scaling.score
        return Estimate(
            logistic(own(score)),
            logistic(own(score - spread)),
            logistic(own(score + spread)),
            logistic(score),
        )


def _deviation(proposal: Proposal) -> float:
    variance = 0.0
    for option in proposal.options:
        right, wrong = max(option.evidence.right, 0.1), max(option.evidence.wrong, 0.1)
        variance += (right + wrong) / (right * wrong * (right + wrong + 1))
    return sqrt(variance)


def logistic(score: float) -> float:
    """The probability of log-odds."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


def log_odds(probability: float) -> float:
    """The log-odds of a probability, kept within those of 0.001 and 0.999."""
    kept = min(0.999, max(0.001, probability))
    return log(kept / (1 - kept))


class Blend(BaseModel):
    """How likely a repair is that is not sure: Platt's regression over all that is known of it.

    Trees know kinds of mistakes, the estimate knows evidence, doubts know what looks wrong; each
    alone says too little of what is right.
    """

    intercept: float = 0.0
    trees: float = Field(default=1.0, ge=0)
    left: float = Field(default=0.0, ge=0)
    estimate: float = Field(default=0.0, ge=0)

    def probability(self, odds: float, left: float, estimate: float) -> float:
        """From the trees' log-odds, the share that doubts left, and the estimate with it."""
        score = self.trees * odds + self.left * log(left) + self.estimate * log_odds(estimate)
        return logistic(self.intercept + score)


@cache
def shipped_blend() -> Blend:
    """The blend that was fitted on the project's own benchmark."""
    return Blend.model_validate(read_json("calibration.json")["blend"])


@cache
def shipped() -> Calibration:
    """The calibration that was fitted on the project's own benchmark history."""
    fitted = read_json("calibration.json")
    return Calibration(intercept=fitted["intercept"], weights=fitted["weights"])


_AFTER_A_FAILURE = 0.66
"""What is left of a confidence after a reported failure: below half after three of one agent."""
MIN_CONFIDENCE = 0.15
"""Below this nothing is proposed (4-rules.md, Suggesting)."""


JUDGED = (
    "likelihood", "rivals", "uncovered", "strange", "no_schema", "lost", "unusual", "bound",
    "refused", *AUDITED,
)  # fmt: skip
"""What `retrieval.proposals.audit.Trees` judge by: some of `FEATURES`, how sure the place is that
values come from, whether the schema refuses the call as it was sent (-1 without one), the audit."""
_WORDS = (JUDGED.index("new_words"), JUDGED.index("lost_words"))
_MOST_JUDGED = 4
_STILL_WRONG = 0.7
_NOT_SURE, _EVEN = SURE - 0.01, 0.5
_SURE_OF_A_PLACE = 0.92
"""What the trees must say where a change that only renames or moves is sure. It shows less of
itself than others: of mistakes of a batch that trees had never seen, one in nine was wrong where
they said `SURE`, and one in thirty above this."""


@dataclass(frozen=True, slots=True)
class RankedProposal:
    """A proposal that may be made, with what its confidence comes from.

    `rank` is what it is ordered by, the higher the surer; `left` the share that doubts left of it;
    `judged` the vector of `JUDGED`, None where it was not judged so.
    """

    proposal: Proposal
    features: tuple[float, ...]
    estimate: Estimate
    rank: float
    left: float = 1.0
    judged: tuple[float, ...] | None = None


_MORE_MAY_BE_WRONG = 0.79
"""A judgement: a validator that stops at its first fault says nothing of the rest of the call."""


def judge(case: Case, calibration: Calibration) -> list[RankedProposal]:
    """The proposals that fit schema and error, each parameters once, surest first."""
    check = None if case.schema is None else check_of(case.schema)
    likeliest: dict[str, tuple[float, Proposal]] = {}
    for proposal in propose(case):
        if accepts(case, proposal, check):
            own = likelihood(proposal)
            if proposal.key not in likeliest or own > likeliest[proposal.key][0]:
                likeliest[proposal.key] = own, proposal
    found = []
    for key, (own, proposal) in likeliest.items():
        others = [other for each, (other, _) in likeliest.items() if each != key]
        features = features_of(case, proposal, own, others)
        estimate = calibration.estimate(features, proposal)
        if (weak := weakest(features, proposal)) is not None:
            # Several changes are no surer than one of them.
            least = calibration.estimate(weak, _least_sure(proposal))
            estimate = Estimate(*map(min, zip(estimate, least, strict=True)))
        left, most = doubted(case, proposal), bound(proposal)
        if not case.knows_tool and any(fault.is_first for fault in case.faults):
            most = min(most, _MORE_MAY_BE_WRONG)
        estimate = Estimate(*(min(most, each) for each in estimate)).times(left)
        found.append(RankedProposal(proposal, features, estimate, estimate.shipped, left))
    found.sort(key=_surest)
    refused = -1.0
    if case.schema is not None and found:
        refused = float(check is not None and not fits_schema(check, case.parameters))
    found[:_MOST_JUDGED] = [_judged(case, each, refused) for each in found[:_MOST_JUDGED]]
    found.sort(key=_surest)
    limits = accumulate((each.estimate.shipped for each in found), min)
    return [
        each
        if each.estimate.shipped == limit
        else replace(each, estimate=each.estimate.moved_to(limit))
        for each, limit in zip(found, limits, strict=True)
    ]


def _surest(ranked: RankedProposal) -> tuple[float, str]:
    return -ranked.rank, ranked.proposal.key


def _judged(case: Case, ranked: RankedProposal, refused: float) -> RankedProposal:
    """The proposal with what the trees say; what was mended alike before has its own record."""
    proposal = ranked.proposal
    options = proposal.options
    if any(option.share for option in options) or all(option.repairs for option in options):
        return ranked
    told = dict(zip(FEATURES, ranked.features, strict=True))
    most = bound(proposal)
    told |= {"bound": most, "refused": refused}
    told |= zip(AUDITED, audit(case, proposal), strict=True)
    vector = tuple(told[name] for name in JUDGED)
    estimate, bar = ranked.estimate.shipped, bar_of(vector)
    first, *others = shipped_trees()
    odds = first.log_odds(vector)
    likely = unanimous(chain((odds,), (each.log_odds(vector) for each in others)), bar)
    blend = shipped_blend().probability(odds, ranked.left, estimate)
    if proposal.doubt:  # reported failures weigh as they do, whatever the kind of the mistake
        blend = min(blend, estimate, likely)
    rank, probability = judged(estimate, likely, bar, blend, is_doubted=ranked.left < 1)
    moved = ranked.estimate.moved_to(min(most, probability))
    return replace(ranked, estimate=moved, rank=min(most, rank), judged=vector)


def unanimous(odds: Iterator[float], bar: float) -> float:
    """How likely the first trees say it is; not sure where others are not, above `bar`."""
    likely = logistic(next(odds))
    return _NOT_SURE if likely > bar and any(logistic(each) <= bar for each in odds) else likely


def judged(
    estimate: float, likely: float, bar: float, blend: float, *, is_doubted: bool
) -> tuple[float, float]:
    """What weights, trees and doubts leave, by which repairs are ordered, and the probability.

    What they keep below a line stays: the lines are those above which a repair is sure, likelier
    than not, and shown. Between them it is as likely as the `blend` says. `bar` is what the trees
    must say, as `bar_of` tells it.
    """
    told = likely if likely > bar else min(likely, _NOT_SURE)
    if is_doubted:
        least = min(estimate, told)
    elif estimate < MIN_CONFIDENCE:
        least = min(told, _EVEN - 0.01)
    elif estimate > SURE:
        least = estimate if told > SURE else told
    else:
        least = min(told, max(estimate, _NOT_SURE))
    if not MIN_CONFIDENCE <= least <= SURE:
        return least, least
    if least < _EVEN:
        return least, max(least, min(blend, _EVEN - 0.01))
    return least, min(_NOT_SURE, max(blend, _EVEN))


def bar_of(vector: tuple[float, ...]) -> float:
    """How sure the trees must be of what they were given, as `JUDGED` names it."""
    return SURE if any(vector[place] for place in _WORDS) else _SURE_OF_A_PLACE


def weakest(features: tuple[float, ...], proposal: Proposal) -> tuple[float, ...] | None:
    """The features of the least sure of several options, as if it were the only one."""
    if len(proposal.options) == 1:
        return None
    own = likelihood(_least_sure(proposal))
    odds, told = log(own / (1 - own)), dict(zip(FEATURES, features, strict=True))
    told |= {"likelihood": odds, "options": 0.0, "unlikely": min(0.0, odds - _LIKELY)}
    return tuple(told.values())


def _least_sure(proposal: Proposal) -> Proposal:
    option = min(proposal.options, key=lambda each: each.evidence.mean)
    return replace(proposal, options=(option,))


def doubted(case: Case, proposal: Proposal) -> float:
    """The share of a confidence, in (0, 1], that reports and what is strange in the call leave."""
    left = float(_AFTER_A_FAILURE**proposal.doubt) * left_of_confidence(case, proposal)
    if any(option.share or option.repairs for option in proposal.options):
        return left
    # A value that the error itself shows to be wrong is still there.
    shown = {f.parameter for f in case.reading.faults if f.path and f.value_text is not None}
    return left * _STILL_WRONG if shown & case.parameters.keys() - proposal.touched else left
