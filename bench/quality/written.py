"""Wrong calls, written one by one: what models send to some two hundred tools, and what is meant.

    python -m bench.quality --only written

Each line of `bench/quality/written/*.jsonl` is a failed call with the tool's schema and the error
in the words of its server, and the call that was meant; null where nobody can know it. They were
written without a look at what mends them, in about the shares in which models make such mistakes,
and held against their schemas. The memory is empty but for the corpus that is shipped: what counts
is schema, error and call. A set is looked at only after it was measured at first sight.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from aftercall.models import ToolAnnotations
from aftercall.reflection.retry_rules import apply_changes
from bench.quality.brain import Brain, open_brain
from bench.quality.methods import Method, failed_call, results_of
from bench.quality.tables import UNREPAIRABLE, table
from bench.quality.trial import Attempt, Damage, Json, Trial, Verdict
from bench.quality.worlds import read_texts
from embeddings.protocol import Embedder
from retrieval.knowledge.values.scalars import same_value

CASES = Path(__file__).parent / "written"
_KEPT = "# At first sight"


def trials(file: Path) -> Iterator[Trial]:
    """The cases of a file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        gold, family = case["gold"], file.stem
        error = {name: value for name, value in case["error"].items() if value is not None}
        yield Trial(
            session=case["id"], tool=case["tool"], server=case["server"], damaged=case["call"],
            gold=gold or {}, error={"type": "ToolError", **error}, context=case["context"] or "",
            schema=case["schema"],
            damage=Damage(case["kind"], family if gold is not None else UNREPAIRABLE),
            judge=partial(_judge, gold),
            hints=ToolAnnotations.model_validate(
                {key: value for key, value in case["annotations"].items() if key.endswith("Hint")}
            ),
        )  # fmt: skip


async def _judge(gold: Json | None, parameters: Json) -> Verdict:
    return "right" if same_value(read_texts(parameters), read_texts(gold)) else "wrong success"


def _asked(brain: Brain, *, with_schema: bool) -> Method:
    async def attempts(trial: Trial) -> list[Attempt]:
        answer = await brain.ask(failed_call(trial, with_schema=with_schema), hints=trial.hints)
        return [
            Attempt(parameters, each.confidence, bool(each.safe))
            for each in answer.suggestions
            if each.action == "change_parameters"
            and (parameters := apply_changes(trial.damaged, each.changes)) is not None
        ]

    return attempts


async def measure(embedder: Embedder, folder: Path) -> None:
    """Measure all sets, print and write `written.md`; what was measured at first sight stays."""
    about = __doc__.split("\n\n", 2)[2].replace("\n", " ").strip()
    parts = [
        "# Wrong calls, written one by one",
        f"`python -m bench.quality --only written`. {about}",
    ]
    for file in sorted(CASES.glob("*.jsonl")):
        found = []
        for with_schema in (True, False):
            async with open_brain(embedder) as brain:
                method = _asked(brain, with_schema=with_schema)
                found.append(await results_of(list(trials(file)), method))
        parts += [f"## {file.stem}", table(found[0], found[1])]
        print("\n\n".join(parts[-2:]), flush=True)
    page = folder / "written.md"
    if page.exists() and _KEPT in (before := page.read_text(encoding="utf-8")):
        parts.append(_KEPT + before.split(_KEPT)[-1].rstrip())
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
