"""The policy: whether a repair may be followed without asking, and one true sentence why.

It reads the account's class, the tool's hints, whether the call was rejected before it ran, and who
mended such calls so. How sure a repair is does not matter here; what it could do wrong does.
"""

from collections.abc import Iterable

from aftercall import models as m
from aftercall.change_classes import alters_qualifier, may_be_followed, qualifiers_of, reads_only
from aftercall.json_values import JsonObject
from retrieval.answers.proposers.case import Case
from retrieval.knowledge.calls.account import Account


def follow(
    case: Case,
    account: Account,
    corrected: JsonObject,
    tool_name: str,
    hints: m.ToolAnnotations,
    principals: int,
    *,
    is_strange: bool,
    of_sibling: bool = False,
) -> m.RetryAdvice:
    """Return whether a repaired call may be sent without asking, with the reason.

    Args:
        case: the failed call.
        account: what the repair does with each value.
        corrected: parameters of the repaired call.
        tool_name: name of the tool, by which it may be presumed to read or to destroy.
        hints: claims about the tool that the caller trusts.
        principals: how many principals made the same change to values like these.
        is_strange: whether the repair rests on what one other principal says.
        of_sibling: whether it was learned on another tool and has not worked on this one.
    """
    if account.questions:
        return m.RetryAdvice(safe=False, reason=question_of(account))
    if account.unexplained:
        return m.RetryAdvice(safe=False, reason="nobody states one of its values")
    safe, reason = may_be_followed(
        account.change_class,
        tool_name,
        hints,
        rejected=case.reading.rejected_before_run,
        call=case.parameters,
        principals=principals,
        quorum=case.quorum,
    )
    if safe and of_sibling:
        reason = "it mended a like tool, and has not been tried on this one"
        return m.RetryAdvice(safe=False, reason=reason)
    if safe and is_strange:
        return m.RetryAdvice(safe=False, reason="only one other caller has reported this repair")
    writes = not reads_only(tool_name, hints, case.parameters)
    if safe and writes and alters_qualifier(case.parameters, corrected):
        reason = "a parameter that limits what the call does would be lost or become another"
        return m.RetryAdvice(safe=False, reason=reason)
    if safe and writes and (names := _unknown_qualifiers(case, corrected)):
        reason = f"the tool may pass over `{names[0]}`, which limits what the call does"
        return m.RetryAdvice(safe=False, reason=reason)
    return m.RetryAdvice(safe=safe, reason=reason)


def question_of(account: Account) -> str:
    """Return the question that a repair leaves open: which of several places is meant."""
    first = account.questions[0]
    names = [_shown(path[-1:]) for path in (first.path, *first.rivals)]
    source = _shown(first.source[-1:]) if first.source else "a value"
    return f"{source} may be {' or '.join(names)}: that is for the caller to say"


def _shown(steps: Iterable[str | int]) -> str:
    return "".join(f"`{step}`" for step in steps)


def _unknown_qualifiers(case: Case, corrected: JsonObject) -> list[str]:
    """Return the names that limit or negate, and that the tool is not known to have."""
    known = set(case.view.parameters) if case.view is not None else set()
    if not known:
        shown = (f for f in case.faults if f.kind not in ("missing", "unexpected"))
        known = {fault.parameter for fault in shown if fault.parameter}
    return [name for name in corrected if name not in known and qualifiers_of(name)]
