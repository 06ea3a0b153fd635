"""The lesson of a pattern in words: what mended such failures, as far as everybody may hear it."""

from collections.abc import Iterator, Sequence

from aftercall.wire import ErrorCategory
from retrieval.confidence import MIN_CONFIDENCE, lower_bound
from retrieval.knowledge import RepairRule, SignatureKnowledge
from retrieval.known_tools.common import may_be_told
from retrieval.known_tools.records import ToolRecord
from retrieval.lessons import lesson_of
from retrieval.proposals.experience import rule_trials

_UNCHANGED = "The same call, made again later, worked."
_BY_CATEGORY: dict[ErrorCategory, str] = {
    "rate_limited": "Wait before calling again; the call itself is right.",
    "timeout": "The call took too long: ask for less, or call again later.",
    "unavailable": "The tool could not be reached; the same call may work later.",
    "permission_denied": "The caller may not do this: ask for the permission, do not retry.",
    "user_rejected": "The user refused the call: ask before trying anything like it.",
    "wrong_tool_boundary": "This is not the tool's job: use another one, or split the request.",
    "conflict": "The present state refuses the call: read it anew first.",
}


def lesson_of_pattern(
    signatures: Sequence[str], category: ErrorCategory, record: ToolRecord
) -> str:
    """What helps against failures of these signatures; empty where nothing is known.

    The rule that mended most of them, of those that mend surely enough and may be told; else what
    the category says.
    """
    known = [found for each in signatures if (found := _known(record, each)) is not None]
    ranked = sorted(_told(known, record), key=lambda rule: (-rule.repairs, _text(rule)))
    return _text(ranked[0]) if ranked else _BY_CATEGORY.get(category, "")


def _told(known: Sequence[SignatureKnowledge], record: ToolRecord) -> Iterator[RepairRule]:
    for each in known:
        for rule in each.rules.values():
            if may_be_told(rule, record) and lower_bound(rule_trials(rule)) >= MIN_CONFIDENCE:
                yield rule


def _text(rule: RepairRule) -> str:
    return lesson_of(rule.edits) if rule.edits else _UNCHANGED


def _known(record: ToolRecord, signature: str) -> SignatureKnowledge | None:
    return None if record.knowledge is None else record.knowledge.signature(signature)
