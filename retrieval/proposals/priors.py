"""Priors: how often each kind of edit was right before anything is known of the tool.

`retrieval/calibration.json` has what was counted on the project's own benchmark (see `docs/adr`);
a kind that was not seen there keeps the judgement beside its name in the code.
"""

import json
from functools import cache
from importlib.resources import files

from retrieval.proposals.option import Trials


def prior(kind: str, right: float, wrong: float) -> Trials:
    """The counts to begin with: those that were measured, else the given ones.

    Args:
        kind: a stable name, such as `rename.like`; outcomes are counted under it.
        right: judged pseudo-count of right ones.
        wrong: judged pseudo-count of wrong ones.
    """
    counted = _measured().get(kind)
    return Trials(*counted, kind=kind) if counted else Trials(right, wrong, kind=kind)


@cache
def _measured() -> dict[str, tuple[float, float]]:
    text = files("retrieval").joinpath("calibration.json").read_text(encoding="utf-8")
    return {kind: (counts[0], counts[1]) for kind, counts in json.loads(text)["priors"].items()}
