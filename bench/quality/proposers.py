"""What each registered proposer earns: cases that are right with it and not without it.

    python -m bench.quality --only proposers

The sets are those that need no memory: the written ones, the own set of validators, the given
halves of dialects and field, each with and without a schema, and the values of sessions. Each case
is asked once with all proposers; where one of them is behind the first suggestion, it is asked
again with that one left out (`proposers.registry.without`). *Lost* are cases that are
right no more then, *gained* those that are right only then. A case is right when the repaired call
is one of the right ones. A proposer that earns nothing on any set is to be deleted, unless a rule
of safety or a set that is not here needs it: learning (`rewrites`, `siblings`) is another matter.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from aftercall.models import SuggestRequest
from bench import data
from bench.quality import fit, written
from bench.quality.brain import WORKSPACE, open_brain
from bench.quality.methods import failed_call, record_earlier
from bench.quality.trial import Trial
from embeddings.protocol import Embedder
from retrieval.answers.answer import Question
from retrieval.answers.judge.ranking import RankedProposal, judge
from retrieval.answers.proposers.registry import proposer_names, without_proposer
from retrieval.knowledge.confidence import Scaling

_NEEDS_DATA = ("dialects", "field")


@dataclass
class Earned:
    """Cases that a proposer is behind, and what became of them without it."""

    behind: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    gained: Counter[str] = field(default_factory=Counter)


def sets() -> Iterator[tuple[str, list[Trial]]]:
    """Yield the sets that are there, with their cases."""
    files = sorted(written.CASES.glob("*.jsonl"))
    yield "written", [trial for file in files for trial in written.trials(file)]
    for name in fit.WORDS:
        if name not in _NEEDS_DATA or data.is_there(f"{name}"):
            yield name, fit.word_trials(name)
    yield "session", fit.session_trials()


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure; print and write `proposers.md`."""
    earned = {name: Earned() for name in proposer_names()}
    asked: Counter[str] = Counter()
    for name, trials in sets():
        for with_schema in (True, False):
            async with open_brain(embedder) as brain:
                known = set[str]()
                for trial in trials:
                    await record_earlier(brain, trial, known)
                    call = failed_call(trial, with_schema=with_schema)
                    request = SuggestRequest(execution=call)
                    question = await brain.suggester.gather(WORKSPACE, request)
                    asked[name] += 1
                    await _count(trial, question, name, earned)
    page = _page(earned, asked)
    print(page)
    (folder / "proposers.md").write_text(page, encoding="utf-8")


async def _count(trial: Trial, question: Question, of: str, earned: dict[str, Earned]) -> None:
    first = _first(question)
    if first is None:
        return
    is_right = await _is_right(trial, first)
    behind = {option.proposer for option in first.proposal.options if option.proposer}
    for name in behind & earned.keys():
        with ExitStack() as stack:
            stack.enter_context(without_proposer(name))
            other = _first(question)
            was_right = other is not None and await _is_right(trial, other)
        earned[name].behind[of] += 1
        earned[name].lost[of] += is_right and not was_right
        earned[name].gained[of] += was_right and not is_right


def _first(question: Question) -> RankedProposal | None:
    return next(iter(judge(question.case, Scaling())), None)


async def _is_right(trial: Trial, ranked: RankedProposal) -> bool:
    return await trial.judge(ranked.proposal.parameters) == "right"


def _page(earned: dict[str, Earned], asked: Counter[str]) -> str:
    rows = []
    for name, each in sorted(earned.items(), key=lambda pair: -pair[1].lost.total()):
        cells = [f"{each.lost[of]} / {each.gained[of]}" for of in asked]
        rows.append(f"| `{name}` | {each.behind.total()} | {' | '.join(cells)} |")
    heads = [f"{of}, {count}" for of, count in asked.items()]
    idle = [name for name, each in earned.items() if not each.lost.total()]
    return "\n".join([
        "# What each proposer earns", "", " ".join(__doc__.split("\n\n", 2)[2].split()), "",
        f"| lost / gained without it | behind the first | {' | '.join(heads)} |",
        "|---|---:" + "|---:" * len(heads) + "|", *rows, "",
        f"Of {len(earned)} proposers {len(idle)} earn nothing on these sets: {', '.join(idle)}.",
        "",
    ])  # fmt: skip
