"""What the service knows of a repair, for the policy that it shares with the SDK.

The account's class, what it leaves open, and the doubts that only the service can have.
"""

from collections.abc import Iterable

from aftercall import models as m
from aftercall.change_classes import alters_qualifier, qualifiers_of, reads_only
from aftercall.json_values import JsonObject
from aftercall.policy import Repair, decide_repair
from retrieval.answers.proposers.case import Case
from retrieval.knowledge.calls.account import CallAccount


def follow(
    case: Case,
    account: CallAccount,
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
        is_strange: whether the repair rests on what one other principal states.
        of_sibling: whether it was learned on another tool and has not worked on this one.
    """
    refusal = "nobody states one of its values" if account.unexplained else ""
    if account.questions:
        refusal = question_of(account)
    doubts = []
    if of_sibling:
        doubts.append("it mended a like tool, and has not been tried on this one")
    if is_strange:
        doubts.append("only one other caller has reported this repair")
    reads = reads_only(tool_name, hints, case.parameters)
    if not reads and not alters_qualifier(case.parameters, corrected):
        names = _doubtful_names(case, corrected)
        passed = "the tool may pass over `{}`: nothing shows that it has such a parameter"
        doubts.extend(map(passed.format, names))
    return decide_repair(
        Repair(
            change_class=account.change_class,
            tool_name=tool_name,
            hints=hints,
            before=case.parameters,
            after=corrected,
            rejected=case.reading.rejected_before_run,
            principals=principals,
            quorum=case.quorum,
            refusal=refusal,
            doubts=doubts,
        )
    )


def question_of(account: CallAccount) -> str:
    """Return the question that a repair leaves open: which of several places is meant."""
    first = account.questions[0]
    names = [_shown(path[-1:]) for path in (first.path, *first.rivals)]
    source = _shown(first.source[-1:]) if first.source else "a value"
    return f"{source} may be {' or '.join(names)}: that is for the caller to say"


def _shown(steps: Iterable[str | int]) -> str:
    return "".join(f"`{step}`" for step in steps)


def _doubtful_names(case: Case, corrected: JsonObject) -> list[str]:
    """Return the names that the tool may pass over: it is not known to have them.

    Where schema or successes show what the tool has, only those that limit or negate.
    """
    if case.view is not None and case.knows_tool:
        unknown = corrected.keys() - case.view.parameters.keys()
        return [name for name in corrected if name in unknown and qualifiers_of(name)]
    shown = {fault.parameter for fault in case.faults if fault.kind != "unexpected"}
    shown |= {fault.suggested for fault in case.faults}
    return [name for name in corrected if name not in shown]
