"""ResilientForge, with an oracle in the place of its language model.

Its fixes put constants in and apply named functions to top-level arguments. Of each tool's two
examples the oracle finds the fix that explains both, if its language has one, and no other: no
model could find a better one. Learning, signatures and replay are the library's own. Without
examples it has learned nothing and leaves a call alone.
"""

import json
import sys
import tempfile
from contextlib import suppress

from resilientforge import wrap
from resilientforge.core.engine import RecoveryExhaustedError
from resilientforge.core.recovery import TRANSFORM_REGISTRY, Fix, TransformError, apply_fix
from resilientforge.oracle import Oracle


class ToolError(Exception):
    """What the tool says of a call."""


def best_fix(examples):
    """Return the fix that makes the right call of each failed one; None where none does."""
    patch, transforms = {}, []
    for name in {name for each in examples for name in each["fixed"]}:
        wanted = [each["fixed"].get(name) for each in examples]
        if all(each["call"].get(name) == each["fixed"].get(name) for each in examples):
            continue
        if all(value == wanted[0] for value in wanted):
            patch[name] = wanted[0]
        else:
            transforms += [
                {"argument": name, "transform": each}
                for each in TRANSFORM_REGISTRY
                if all(does(name, each, example) for example in examples)
            ][:1]
    fix = Fix(strategy="oracle", argument_patch=patch, transforms=transforms)
    explains = all(apply_fix(each["call"], fix) == each["fixed"] for each in examples)
    return fix.model_dump() if explains else None


def does(name, transform, example):
    try:
        fix = Fix(strategy="one", transforms=[{"argument": name, "transform": transform}])
        return apply_fix(example["call"], fix)[name] == example["fixed"].get(name)
    except (TransformError, KeyError):
        return False


def invoke(question, error, is_right, oracle, reflect=None):
    """Call the tool through the library; return every call that reached the tool."""
    sent = []

    def tool(**arguments):
        sent.append(arguments)
        if not is_right(arguments):
            raise ToolError(error["message"])
        return "done"

    agent = wrap(tool, tool_name=question["tool"], oracle=oracle, reflect=reflect,
                 max_recovery_attempts=1)  # fmt: skip
    with suppress(RecoveryExhaustedError):
        agent.invoke(**question["call"])
    return sent


def repaired(question):
    examples = question.get("examples") or []
    fix = best_fix(examples) if examples else None
    if fix is None:
        return None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        oracle = Oracle(folder)
        for each in examples:
            told = question | {"call": each["call"]}
            is_fixed = each["fixed"].__eq__
            invoke(told, each["error"], is_fixed, oracle, lambda _: fix)
        if question["error"] is None:
            sent = invoke(question, {}, lambda _: True, oracle)
        else:
            failed = question["call"]
            sent = invoke(question, question["error"], lambda call: call != failed, oracle)
    return sent[-1]


for line in sys.stdin:
    print(json.dumps({"call": repaired(json.loads(line))}), flush=True)
