"""When a failed call is tried again, with what, and after how long: decisions without I/O.

The rules (document 004 of the seeds, narrowed where a retry could do harm):

- at most three attempts in all, and only on a suggestion with confidence above 0.80;
- the second retry takes the next suggestion of the first answer. When none is left, an answer to
  the *new* error is followed: of two mistakes the second shows only after the first is repaired;
- never after a typed referral (`wrong_tool_boundary`, `low_utility`), whether the service answers
  or not: what it proposes is for the caller;
- never the same parameters twice, except for `retry_unchanged`;
- never where a retry could repeat a side effect; each failure is judged by itself;
- a failure of the moment of a call that only reads is retried once, unchanged, after the advised
  wait, however sure that advice is;
- `escalate`, `switch_tool` and `call_first` are for the caller to decide, and so is everything
  ranked below them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from aftercall.change_classes import QUORUM, is_destroying, reads_only
from aftercall.errors import ConfigurationError
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject
from aftercall.models.calls import (
    Change,
    ExecutionError,
    Suggestion,
    SuggestResponse,
    ToolAnnotations,
)
from aftercall.outcomes import TRANSIENT, is_referral
from aftercall.policy import Repair, decide_repair
from aftercall.reflection.corrected_call import CorrectionError, correct_call

MOST_ATTEMPTS = 3
"""Seed 004: "Limit to 3 retry attempts per tool call"; the first call is one of them."""
_WHY_REFERRED = {
    "wrong_tool_boundary": "wrong_tool_boundary is a referral: the tool says that this is not its "
    "job, and calling it again does not make it so",
    "low_utility": "low_utility is a referral: the tool answered and says that the answer is of "
    "little use, which the same call would be again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionPolicy:
    """What may be done about a failed call. The defaults are the rules of the domain.

    Args:
        max_attempts: calls of the tool in all, 1 to 3; 1 asks for suggestions and never retries.
        min_confidence: a suggestion is followed only when its confidence is above this, 0 to 1.
        base_backoff_s: the n-th retry waits a random time up to this times 2^(n-1), in seconds.
        max_wait_s: longest wait in seconds; a service that advises a longer one is not retried.
        trust_annotations: whether the tool maker's claims (read-only, idempotent) may make a
            retry safe.
        disabled_agents: agents whose calls are recorded but neither asked about nor retried.
        unrecorded_agents: agents whose calls are not even recorded.
        min_failure_rate: tools that fail less often than this share of their calls are not
            reflected on, once enough calls were counted (see `FailureRates`); 0 reflects on all.
        suggest_timeout_s: longest wait for the service, in seconds; then the call fails as it is.
        keeps_values: whether only a lossless change is followed, as of tools that write: their
            user approved the values that stand in the call.
    """

    max_attempts: int = MOST_ATTEMPTS
    min_confidence: float = 0.80
    base_backoff_s: float = 0.1
    max_wait_s: float = 10.0
    trust_annotations: bool = True
    disabled_agents: frozenset[str] = frozenset()
    unrecorded_agents: frozenset[str] = frozenset()
    min_failure_rate: float = 0.0
    suggest_timeout_s: float = 2.0
    keeps_values: bool = False

    def leaves_alone(self, agent: str) -> bool:
        """Return whether nothing is asked or done about this agent's calls."""
        return agent in self.disabled_agents or agent in self.unrecorded_agents

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= MOST_ATTEMPTS:
            raise ConfigurationError(
                f"max_attempts must be 1 to {MOST_ATTEMPTS}, not {self.max_attempts}"
            )
        for name in ("min_confidence", "min_failure_rate"):
            value: float = getattr(self, name)
            if not 0 <= value <= 1:
                raise ConfigurationError(f"{name} must be between 0 and 1, not {value}")


@dataclass(frozen=True, slots=True)
class Retry:
    """The next attempt: what to send, after how many seconds, and on whose word.

    `changes` lead from the first call's parameters to these; where a suggestion came on top of
    another, they are those of both.
    """

    parameters: JsonObject
    wait_s: float
    suggestion: Suggestion
    changes: tuple[Change, ...] = ()


_Sent = tuple[JsonObject, tuple[Change, ...]]
"""What an attempt sends, and the changes that lead to it from the first one."""


@dataclass(eq=False)
class RetryRules:
    """Decides about one call, first made with these parameters, failure by failure.

    With `may_repeat` the caller vouches that calling twice does no harm. `jitter` is a random
    number in [0, 1), drawn once per retry. `tool_name` and `annotations`, hints of the live tool
    that are trusted (None where none are known here), count next to the service's word.
    """

    policy: ReflectionPolicy
    parameters: JsonObject
    _: KW_ONLY
    may_repeat: bool
    jitter: Callable[[], float]
    tool_name: str = ""
    annotations: ToolAnnotations | None = None

    def __post_init__(self) -> None:
        self._sent: list[_Sent] = [(self.parameters, ())]
        self._errors: list[ExecutionError] = []
        self._first_answer: deque[Suggestion] = deque()
        self._followed: set[str] = set()
        self._offered: list[Suggestion] = []
        self._has_waited = False
        self._is_transient = False
        self._why_none = "no suggestion"
        self._why_unsafe: dict[str, str] = {}
        self.reason = "the service was not asked"
        """Why there is no (further) retry, in words."""

    @property
    def remaining(self) -> list[Suggestion]:
        """Suggestions offered and not tried, for a manual fix."""
        return [offer for offer in self._offered if offer.suggestion_id not in self._followed]

    def next_retry(self, error: ExecutionError, answer: SuggestResponse | None) -> Retry | None:
        """Return what to do about the error of the latest attempt.

        None ends the call, for a `reason`.

        `answer` is what the service states about it; None when it did not answer.
        """
        is_first = not self._errors
        self._errors.append(error)
        if answer is not None:
            self._is_transient = answer.pattern.category in TRANSIENT
            known = {offer.suggestion_id for offer in self._offered}
            self._offered += [s for s in answer.suggestions if s.suggestion_id not in known]
        if answer is not None and answer.suggestions:
            # The service gives a reason for its first suggestion alone.
            self._why_unsafe[answer.suggestions[0].suggestion_id] = _why_unsafe(answer)
        if is_first and answer is not None:
            self._first_answer = deque(answer.suggestions)
            self._why_none = answer.reason or self._why_none
        if len(self._errors) >= self.policy.max_attempts:
            only_advises = self.policy.max_attempts == 1
            self.reason = "calls are only advised on here" if only_advises else "no attempt is left"
            return None
        if refusal := self._find_refusal(error, answer):
            self.reason = refusal
            return None
        retry = self._first_usable(self._first_answer, self._sent[0])
        if retry is None and not is_first and answer is not None:
            # For the same error again only waiting is new; another change would be a guess.
            old, new = ((e.type, e.code, e.message) for e in self._errors[-2:])
            fresh = [s for s in answer.suggestions if old != new or s.action == "retry_unchanged"]
            retry = self._first_usable(deque(fresh), self._sent[-1])
        if retry is not None:
            self._followed.add(retry.suggestion.suggestion_id)
            self._sent.append((retry.parameters, retry.changes))
        return retry

    def _find_refusal(self, error: ExecutionError, answer: SuggestResponse | None) -> str | None:
        if error.details.get("guessed"):
            return "the tool itself did not call this an error"
        kind = error.type if is_referral(error) else answer.pattern.category if answer else None
        if kind in _WHY_REFERRED:
            return _WHY_REFERRED[kind]
        if answer is None:
            goes_on = self.may_repeat and self._first_answer
            return None if goes_on else "the service gave no answer"
        if answer.pattern.category in ("permission_denied", "user_rejected"):
            return f"{answer.pattern.category} is not for a retry to settle"
        is_safe = answer.retry.safe or any(each.safe for each in answer.suggestions)
        if not (self.may_repeat or is_safe):
            return _why_unsafe(answer)
        return None

    def _first_usable(self, offers: deque[Suggestion], about: _Sent) -> Retry | None:
        """Return the best suggestion that may be followed.

        Those that were looked at are used up.
        """
        self.reason = "there is no further suggestion" if self._offered else self._why_none
        while offers:
            offer = offers.popleft()
            if offer.action in ("escalate", "switch_tool", "call_first"):
                self.reason = f"the suggestion is to {offer.action}, which is for the caller"
                offers.clear()
            elif offer.confidence <= self.policy.min_confidence and not self._waits_once(offer):
                self.reason = (
                    f"confidence {offer.confidence:.2f} is not above {self.policy.min_confidence}"
                )
                offers.clear()
            elif retry := self._follow_offer(offer, about):
                return retry
        return None

    def _waits_once(self, offer: Suggestion) -> bool:
        """Return whether it is the first time that a call which only reads is to be made again."""
        if offer.action != "retry_unchanged" or offer.safe is False or self._has_waited:
            return False
        if not self._is_transient:
            return False
        # Hints that only the service has count where there are none here.
        says_so = self.annotations is None and offer.safe is True
        return says_so or reads_only(self.tool_name, self.annotations, self.parameters)

    def _follow_offer(self, offer: Suggestion, about: _Sent) -> Retry | None:
        parameters, changes = about
        if offer.safe is False and not self.may_repeat:
            kind = offer.change_class or "not safe"
            why = self._why_unsafe.get(offer.suggestion_id)
            self.reason = why or f"a change that is {kind} is for the caller"
            return None
        backoff_s = self.jitter() * self.policy.base_backoff_s * 2.0 ** (len(self._errors) - 1)
        if offer.action == "retry_unchanged":
            # The jitter comes on top: never earlier than advised, and not all at the same moment.
            wait_s = (offer.retry_after_ms or 0.0) / 1000 + backoff_s
            if wait_s > self.policy.max_wait_s:
                self.reason = f"the advised wait of {wait_s:.1f} s is too long to hold the call"
                return None
            self._has_waited = True
            return Retry(parameters, wait_s, offer, changes)
        try:
            corrected = correct_call(parameters, offer.changes, offer.account)
        except CorrectionError as error:
            self.reason = str(error)
            return None
        refusal = _own_gate(offer, self.tool_name, self.annotations, parameters, corrected)
        if not refusal and self.policy.keeps_values and offer.change_class != "lossless":
            refusal = "the tool may write, and such a change is for its user to approve"
        if refusal and not self.may_repeat:
            self.reason = refusal
            return None
        if any(same_json(corrected, before) for before, _ in self._sent):
            self.reason = "the suggested parameters have been tried"
            return None
        wait_s = min(backoff_s, self.policy.max_wait_s)
        return Retry(corrected, wait_s, offer, (*changes, *offer.changes))


def _why_unsafe(answer: SuggestResponse) -> str:
    """Why the first suggestion is not followed, in the service's words."""
    first = answer.suggestions[0] if answer.suggestions else None
    repeats = first is None or first.action in ("change_parameters", "retry_unchanged")
    if repeats and (first is None or first.change_class is None):
        return f"a retry could repeat a side effect: {answer.retry.reason}"
    return answer.retry.reason  # of a change it states what is wrong with it


def _own_gate(
    offer: Suggestion,
    tool_name: str,
    annotations: ToolAnnotations | None,
    before: JsonObject,
    after: JsonObject,
) -> str:
    """Why a change is not followed, whatever the service states of it; empty where nothing is.

    The service knows how many repaired such a call so, and may know hints that the caller does not;
    what the tool's name and the caller's own hints say of it is known here as well.
    """
    is_unknown = annotations is None and not is_destroying(tool_name, None)
    decided = decide_repair(
        Repair(
            change_class="lossless" if is_unknown else offer.change_class or "lossless",
            tool_name=tool_name,
            hints=annotations,
            before=before,
            after=after,
            rejected=True,
            principals=QUORUM,
        )
    )
    reads = reads_only(tool_name, annotations, before)
    return "" if reads or decided.safe else decided.reason


def apply_changes(parameters: JsonObject, changes: Sequence[Change]) -> JsonObject | None:
    """Return the parameters with these changes; None where they must not be sent."""
    try:
        return correct_call(parameters, changes)
    except CorrectionError:
        return None
