"""Facts: all that is shown of one tool, as statements in words of its own, before escaping. Pure.

How useful a statement is, is how much trouble it saves in a week, with a failed call as the unit:
the failures a week that it is about, times how likely its reader avoids them.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log

from aftercall.models import Cohesion, ErrorCategory
from aftercall.outcomes import TRANSIENT
from aftercall.tables import sum_values
from mongo.records import ToolKey
from retrieval.answers.advice.waits import in_words
from retrieval.answers.known_tools.common import (
    UNKNOWN,
    Clean,
    Signature,
    count_times,
    in_quotes,
    quote_name,
    show_percent,
    signature_of_tool,
    visible_line,
    without_masks,
)
from retrieval.knowledge.confidence import lower_bound
from retrieval.knowledge.patterns.clusters import AxisClusters
from retrieval.knowledge.patterns.cohesion import DEFAULT_RULES, CohesionRules, cohesion_of
from retrieval.knowledge.reading.signature import signature_of
from retrieval.knowledge.rewrites.edits import Add, Clamp, Edit, Put
from retrieval.knowledge.rewrites.sentences import lesson_of
from retrieval.knowledge.rows.health import HALF_LIFE, KnownHealth, Tally, decayed_weight
from retrieval.knowledge.rows.principals import SURE
from retrieval.knowledge.tool.drift import drift_text
from retrieval.knowledge.tool.profile import COMMON_SESSIONS
from retrieval.knowledge.tool.record import (
    ToolRecord,
    _is_common,
    concrete_bound,
    may_be_told,
    one_key_of,
)
from retrieval.knowledge.tool.rules import SignatureKnowledge, rule_trials
from retrieval.knowledge.values.scalars import write_number

_WEEK = timedelta(days=7)
_PER_WEEK = log(2) * (_WEEK / HALF_LIFE)
"""At a steady rate r the weight of a tally is r x half-life / ln 2 (the sum of the decays)."""
MAX_PITFALLS = 6
"""Kinds of failure shown of one tool; a tool with more has to be repaired."""
_ELSEWHERE: frozenset[ErrorCategory] = frozenset({"wrong_tool_boundary", "low_utility"})
_MAX_NAME = 256
_MAX_SIGNATURE = 100
_MAX_LESSON = 160
_MAX_ABOUT = 120
_MAX_EVIDENCE = 120
_MAX_MESSAGE = 200
_MAX_AXIS = 40
_MAX_AXES = 4
_MAX_METHODS = 8
_MAX_PARTS = 5
_MAX_PART = 60
_QUANTILE = 0.75
"""Within the wait that is shown, three of four sessions saw such a failure pass (as in advice)."""

# Shares of failures that reading avoids, by judgement; only their order decides what is shown
# first.
_LESSON = 0.9
_BARE_ERROR = 0.3
"""An error without a lesson warns, and states itself what was wrong."""
_LIKELY = 0.5
"""A correction that is less likely to be right misleads more often than it helps."""
_BOUNDARY = 0.8
"""Who knows that it is not the tool's job does not ask."""
_UTILITY = 0.4
_SWITCH = 0.6
_WAIT = 0.5
_COHESION = 0.3
_LIMIT = 0.7
_METHODS = 0.1
_HEALTH = 0.05
_DRIFT = 0.5
"""Who knew the tool before has just this to learn."""
_SIGNATURE = 0.1
"""Of all failures: many are of wrong parameters, but an agent that may call a tool mostly has its
schema, and failed all the same."""
_PER_CALL = 0.01
"""Of a call that need not fail: what types and words are worth where nothing has failed yet."""
_UNUSED = 0.001
"""Of a tool that no one called; above nothing, so that free space is used."""
PITFALLS = "Common pitfalls"
FAILS = "If it fails"
BOUNDARIES = "Boundaries and use"
"""Headings of the page."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing to say of a tool, plain and unescaped, in prompt and page (None: not there)."""

    priority: float
    prompt: str | None = None
    page: str | None = None
    heading: str = ""


@dataclass(frozen=True, slots=True)
class _Correction:
    said: str
    """With the share of sessions that repaired it so, where several ways did."""
    edits: Sequence[Edit]
    confidence: float
    alone: bool


@dataclass(frozen=True, slots=True)
class ToolLesson:
    """What callers keep getting wrong, in one plain sentence.

    `failures` are those of the mistake; `confidence`, 0 to 1, is the lower bound of the share of
    repairs that it makes right. With `alone` one key alone states so.
    """

    text: str
    failures: int
    confidence: float
    alone: bool


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What is shown of one tool; `priority` is that of the long signature instead of the short."""

    key: ToolKey
    tool_id: str | None
    name: str
    server: str | None
    signature: Signature
    priority: float
    priority_of_link: float
    statements: tuple[Statement, ...]
    lessons: tuple[ToolLesson, ...] = ()


def use_of(health: KnownHealth | None, now: datetime) -> float:
    """Return how useful it is to know of a tool.

    Its failures a week, and a tenth of its calls a week.
    """
    if health is None:
        return 0.0
    failures = _weekly_weight(health.failures, now)
    return failures + (_weekly_weight(health.successes, now) + failures) / 10


def facts_of(
    record: ToolRecord,
    *,
    clusters: AxisClusters,
    now: datetime,
    clean: Clean,
    tool_names: Collection[str] = (),
    rules: CohesionRules = DEFAULT_RULES,
) -> ToolFacts:
    """Return all that is known of a tool and may be shown to everyone; `clean` masks secrets."""
    health = record.health or KnownHealth()
    facts = _Facts(record, health, now, clean, clusters, tool_names, rules)
    server = record.key.server_name
    return ToolFacts(
        key=record.key,
        tool_id=record.tool.tool_id if record.tool else None,
        name=visible_line(record.key.tool_name, _MAX_NAME, clean),
        server=visible_line(server, _MAX_NAME, clean) if server else None,
        signature=signature_of_tool(record, clean),
        priority=facts.of_all(_SIGNATURE, 1),
        priority_of_link=facts.of_all(0, 0.2),
        statements=tuple(facts.list_statements()),
        lessons=tuple(facts.list_lessons()),
    )


def _weekly_weight(tally: Tally | None, now: datetime) -> float:
    if tally is not None:
        return tally.weight_at(now) * _PER_WEEK
    return 0.0


@dataclass(frozen=True, slots=True)
class _Facts:
    record: ToolRecord
    health: KnownHealth
    now: datetime
    clean: Clean
    clusters: AxisClusters
    tool_names: Collection[str]
    rules: CohesionRules

    def weekly_weight(self, tally: Tally | None) -> float:
        return _weekly_weight(tally, self.now)

    def clean_text(self, text: str, limit: int) -> str:
        return visible_line(text, limit, self.clean)

    def of_all(self, share: float, base: float = 0.1) -> float:
        """Priority of what is about all failures, and of a little use in every call."""
        failures = self.weekly_weight(self.health.failures)
        calls = self.weekly_weight(self.health.successes) + failures
        return share * failures + base * (_PER_CALL * calls + _UNUSED)

    def list_statements(self) -> Iterator[Statement]:
        """Yield all statements in the order of the prompt.

        Those of one heading in that of the page.
        """
        text = self.clean_text(
            self.record.tool.description if self.record.tool else "", 2 * _MAX_ABOUT
        )
        if about := self.clean_text(re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0], _MAX_ABOUT):
            priority = self.of_all(0, 0.2)
            yield Statement(priority, f"about {in_quotes(about)}", f"About: {about}")
        if self.record.tool and (
            changed := drift_text(self.record.tool.contract_changes, self.now)
        ):
            said = self.clean_text(changed, _MAX_MESSAGE)
            yield Statement(self.of_all(_DRIFT), said[0].lower() + said[1:], said)
        yield from self._state_calls()
        yield from self._unknown_parameters()
        yield from self._state_methods()
        cohesion = cohesion_of(self.health, self.clusters, now=self.now, rules=self.rules)
        yield from self._state_boundary(cohesion)
        yield from self._state_utility()
        if cohesion.warning:
            said = f"ohesion: {in_quotes(self.clean_text(cohesion.message, _MAX_MESSAGE))}"
            priority = _COHESION * self.weekly_weight(
                self.health.categories.get("wrong_tool_boundary")
            )
            yield Statement(priority, f"c{said}", f"C{said}.", BOUNDARIES)
        pitfalls = list(self._state_pitfalls())
        yield from (statement for statement, _ in pitfalls)
        yield from self._state_limits()
        worst = max(pitfalls, key=lambda one: one[0].priority, default=None)
        yield from self._state_advice(*worst) if worst else self._state_advice(None, None)

    def _state_calls(self) -> Iterator[Statement]:
        succeeded = self.health.successes.count
        failed = self.health.failures.count
        calls = succeeded + failed
        if not calls:
            return
        good = self.weekly_weight(self.health.successes)
        bad = self.weekly_weight(self.health.failures)
        lately = f", lately {show_percent(good / (good + bad))}" if good + bad else ""
        said = f"{calls} {'call' if calls == 1 else 'calls'}, {show_percent(succeeded / calls)}"
        page = f"Health: {said} succeeded{lately}."
        yield Statement(self.of_all(_HEALTH), f"{said} ok{lately}", page)

    def _unknown_parameters(self) -> Iterator[Statement]:
        if (
            not (self.health.successes.count or self.health.failures.count)
            or signature_of_tool(self.record, self.clean) != UNKNOWN
        ):
            return
        profile = self.record.profile
        said = "its calls were reported without them (let the instrumentation send content)"
        if profile is not None and profile.parameters:
            said = "one caller's own so far; told once another caller has used them"
        yield Statement(
            self.of_all(_SIGNATURE), f"parameters not known: {said}", f"Parameters: {said}."
        )

    def _state_methods(self) -> Iterator[Statement]:
        parameter = self.health.method_parameter
        view = self.record.schema_view()
        stated = view.parameters.get(parameter or "") if view is not None else None
        allowed = stated.allowed if stated is not None else ()
        known = [
            (-each.successes.weight_at(self.now) - each.failures.weight_at(self.now), name, each)
            for name, each in self.health.methods.items()
            if len(each.sessions) >= COMMON_SESSIONS or name in allowed
        ]
        listed = ", ".join(
            f"{quote_name(self.clean_text(name, _MAX_AXIS))} "
            f"{show_percent(each.successes.count / each.calls)} of {each.calls}"
            for _, name, each in sorted(known, key=lambda one: one[:2])[:_MAX_METHODS]
            if each.calls
        )
        if listed:
            by = f" by {quote_name(self.clean_text(parameter, _MAX_AXIS))}" if parameter else ""
            said = f"{by}: {listed}"
            yield Statement(self.of_all(_METHODS), f"methods{said}", f"Methods{said}.")

    def _state_boundary(self, found: Cohesion) -> Iterator[Statement]:
        tally = self.health.categories.get("wrong_tool_boundary")
        if tally is None or not tally.count:
            return
        axes = ", ".join(
            f"{in_quotes(self.clean_text(each.name, _MAX_AXIS))} {each.count}"
            for each in found.axes[:_MAX_AXES]
        )
        said = f"ot its job {count_times(tally.count)}{f': {axes}' if axes else ''}"
        latest = self._latest_evidence("wrong_tool_boundary")
        yield Statement(
            _BOUNDARY * self.weekly_weight(tally),
            f"n{said}{_quote_after('; latest ', latest)}",
            f"N{said}{_quote_after('; latest: ', latest)}.",
            BOUNDARIES,
        )

    def _state_utility(self) -> Iterator[Statement]:
        tally = self.health.categories.get("low_utility")
        said, corrected, weak = (
            each.count if each else 0 for each in (tally, self.health.corrections, self.health.weak)
        )
        counts = (("by its own word", said), ("by its users", corrected), ("weak", weak))
        useless = ", ".join(f"{word} {count_times(count)}" for word, count in counts if count)
        if not useless:
            return
        latest = self._latest_evidence("low_utility")
        priority = _UTILITY * self.weekly_weight(tally) + self.of_all(0)
        yield Statement(priority, f"of little use: {useless}{_quote_after('; latest ', latest)}")
        pages = (
            (said, f"Of little use {count_times(said)}{_quote_after('; latest: ', latest)}."),
            (corrected, f"Corrected by users {count_times(corrected)}."),
            (weak, f"Weak successes: {weak}."),
        )
        yield from (Statement(priority, None, page, BOUNDARIES) for count, page in pages if count)

    def _latest_evidence(self, kind: str) -> str | None:
        """Return the latest evidence of a kind, else the latest message.

        Without its caller's values.
        """
        referrals = [each for each in reversed(self.health.referrals) if each.kind == kind]
        said = next((each.evidence for each in referrals if each.evidence), None)
        said = said or next((each.message for each in referrals if each.message), None)
        if said:
            return self.clean_text(without_masks(signature_of(said)), _MAX_EVIDENCE)
        return None

    def list_lessons(self) -> Iterator[ToolLesson]:
        """Return what repairs teach of the most frequent mistakes, each sentence once."""
        said: set[str] = set()
        for known, _ in self._frequent_mistakes():
            lesson = self._make_lesson(known)
            if lesson is not None and lesson.text not in said:
                said.add(lesson.text)
                yield lesson

    def _state_pitfalls(self) -> Iterator[tuple[Statement, str | None]]:
        yield from (self._state_pitfall(known, rate) for known, rate in self._frequent_mistakes())

    def _frequent_mistakes(self) -> Iterator[tuple[SignatureKnowledge, float]]:
        """Return the most frequent kinds of failure, with how many there are a week."""
        knowledge, ranked = self.record.knowledge, []
        for each in knowledge.signatures.values() if knowledge else ():
            rate = 0.0
            last = each.last_seen
            if last is not None:  # over the time that they took, as far as that is not past
                weeks = (last - (each.first_seen or last)) / _WEEK
                rate = each.count / max(1.0, weeks) * decayed_weight(self.now, last)
            if each.category not in _ELSEWHERE and each.count:
                ranked.append((-rate, -each.count, each.signature, each))
        for rate, _, _, each in sorted(ranked, key=lambda one: one[:3])[:MAX_PITFALLS]:
            yield each, -rate

    def _find_correction(self, known: SignatureKnowledge) -> _Correction | None:
        """Return what repairs a kind of failure; None where nothing is likely to."""
        rules = [
            (share is None, -confidence, lesson_of(rule.edits, share), rule)
            for rule, share in known.told_rules()
            if rule.edits and may_be_told(rule, self.record)
            if (confidence := lower_bound(rule_trials(rule))) >= _LIKELY
        ]
        if not rules:
            return None
        _, unsure, said, rule = min(rules, key=lambda one: one[:3])
        edits = [concrete_bound(self.record, e) if isinstance(e, Clamp) else e for e in rule.edits]
        said = said if edits == rule.edits else lesson_of(edits)
        alone = one_key_of(rule.repair_agents()) is not None
        return _Correction(said, edits, -unsure, alone)

    def _make_lesson(self, known: SignatureKnowledge) -> ToolLesson | None:
        found = self._find_correction(known)
        # A constant that repaired some calls is an example of a value, and no rule for all calls.
        if found is None or any(isinstance(edit, Add | Put) for edit in found.edits):
            return None
        text = self.clean_text(lesson_of(found.edits), _MAX_LESSON)
        return ToolLesson(text, known.count, found.confidence, found.alone)

    def _state_pitfall(
        self, known: SignatureKnowledge, rate: float
    ) -> tuple[Statement, str | None]:
        error = in_quotes(self.clean_text(without_masks(known.signature), _MAX_SIGNATURE))
        prompt = f"pitfall, {count_times(known.count)}: {error}"
        page = f"Mistake ({count_times(known.count)}): {error}."
        if (found := self._find_correction(known)) is None:
            return Statement(_BARE_ERROR * rate, prompt, page, PITFALLS), None
        lesson = in_quotes(self.clean_text(found.said, _MAX_LESSON))
        sure = "(one key alone says so)" if found.alone else f"(sure {found.confidence:.2f})"
        confidence = min(found.confidence, SURE) if found.alone else found.confidence
        page += f" Correction: {lesson} {sure}."
        priority = (_BARE_ERROR + (_LESSON - _BARE_ERROR) * confidence) * rate
        return Statement(priority, f"{prompt}; {lesson} {sure}", page, PITFALLS), lesson

    def _state_limits(self) -> Iterator[Statement]:
        """Numbers refused as out of range, unless the schema states so, by what worked."""
        profile = self.record.profile
        view = self.record.schema_view()
        for name, known in sorted(profile.parameters.items()) if profile else ():
            stated = view.parameters.get(name) if view is not None else None
            bound = known.find_boundary()
            if bound is None or (view is not None and stated is None):
                continue
            above = bound.fails_above is not None and (stated is None or stated.maximum is None)
            below = bound.fails_below is not None and (stated is None or stated.minimum is None)
            is_told = known.is_shared or _is_common(self.record, name, bound)
            if is_told and (above or below):
                worked = " to ".join(
                    dict.fromkeys((write_number(bound.smallest), write_number(bound.largest)))
                )
                beyond = "more and less" if above and below else "more" if above else "less"
                shown = quote_name(self.clean_text(name, _MAX_SIGNATURE))
                said = f"{shown} worked at {worked}; {beyond} was refused"
                # A pitfall often states the same.
                share = min(1.0, len(known.beyond) / max(1, self.health.failures.count))
                priority = _LIMIT * share * self.weekly_weight(self.health.failures)
                yield Statement(priority, said, f"Limit: {said}.", PITFALLS)

    def _state_advice(self, worst: Statement | None, lesson: str | None) -> Iterator[Statement]:
        """Yield what to call instead and how long to wait; where neither is known, the repair."""
        parts = [*self._suggested_tools(), *self._suggested_waits()]
        for said, priority in parts:
            yield Statement(priority, None, f"{said[:1].upper()}{said[1:]}.", FAILS)
        if worst is not None and lesson is not None:
            half = worst.priority / 2  # its pitfall states so too, with the error that it is for
            yield Statement(half, None, f"Most often mended so: {lesson}.", FAILS)
            parts = parts or [(lesson, half)]
        if parts:
            said = "; ".join(said for said, _ in parts)
            yield Statement(sum(each for _, each in parts), f"if this fails, try: {said}")

    def _suggested_tools(self) -> Iterator[tuple[str, float]]:
        """Yield what the tool suggested most, of late above all, to be called in its place."""
        weights = sum_values(
            (parts, decayed_weight(self.now, each.at))
            for each in self.health.referrals
            if (parts := tuple(each.split[:_MAX_PARTS]))
        )
        if not weights:
            return
        best = min(weights, key=lambda parts: (-weights[parts], parts))
        is_tools = all(each in self.tool_names for each in best)
        words = best if is_tools else [without_masks(signature_of(each)) for each in best]
        quoted = quote_name if is_tools else in_quotes
        listed = ", then ".join(quoted(self.clean_text(each, _MAX_PART)) for each in words)
        tally = self.health.categories.get("wrong_tool_boundary")
        rate = self.weekly_weight(tally) if tally is not None else weights[best]
        yield f"{'use' if is_tools else 'split it into'} {listed}", _SWITCH * rate

    def _suggested_waits(self) -> Iterator[tuple[str, float]]:
        recoveries = self.record.knowledge.recoveries if self.record.knowledge is not None else {}
        for category in sorted(TRANSIENT & recoveries.keys()):
            seconds = recoveries[category].quantile_s(_QUANTILE)
            if seconds is not None:
                said = f"where {category}, wait {in_words(1e3 * seconds)} and call again"
                yield said, _WAIT * self.weekly_weight(self.health.categories.get(category))


def _quote_after(lead: str, text: str | None) -> str:
    if text:
        return f"{lead}{in_quotes(text)}"
    return ""
