"""Gathering: the candidates' past scenarios that are like the one asked about."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mongo.records import ToolKey
from retrieval.documents import Document
from retrieval.fitness.demotion import LikeScenario
from retrieval.fitness.finding import Owner, successes_of
from retrieval.fitness.lineage import Candidate
from retrieval.fitness.posterior import LEAST_NEARNESS
from retrieval.fitness.statistics import ToolStatistics
from retrieval.fitness.trials import MAX_TRIALS, Trial, merged
from retrieval.index.protocol import Hit, IndexQuery, VectorIndex
from retrieval.memory import Memory

_PER_TOOL = 8
"""Past scenarios asked for, times the tools asked about: what is nearest over all of them counts
most, so they are asked for together, which takes half the time of a question for each."""

_MAX_SCENARIOS = 400

_MAX_CALLS = _MAX_SCENARIOS * MAX_TRIALS


@dataclass(frozen=True, slots=True)
class PastScenarios:
    """Past scenarios of some tools that are near enough to say something."""

    hits: Mapping[Owner, Sequence[Hit]] = field(default_factory=dict)
    """By tool, nearest first."""
    documents: Mapping[str, Document] = field(default_factory=dict)

    def of(self, candidate: Candidate) -> list[LikeScenario]:
        """Those of a candidate's own versions, nearest first, each call in one of them.

        A call that named no version and a mark of it that does are in two documents.
        """
        own = [
            (hit, document)
            for hit in self.hits.get((candidate.tool.server_name, candidate.tool.name), ())
            if candidate.counts(hit.version)
            and (document := self.documents.get(hit.document_id)) is not None
        ]
        calls = merged(*(document.trials for _, document in own), limit=_MAX_CALLS)
        left = {trial.key: trial for trial in calls}
        return [
            LikeScenario(
                document.text,
                hit.similarity,
                [each for each in document.trials if _taken(left, each)],
                document.message,
            )
            for hit, document in own
        ]

    def successes(self) -> dict[Owner, float]:
        """What they say for each tool's relevance, 0 to 1."""
        hits = (hit for several in self.hits.values() for hit in several)
        return successes_of(hits, self.documents)


def _taken(left: dict[str, Trial], trial: Trial) -> bool:
    """Whether this is what holds of the call, and nobody had it yet."""
    if left.get(trial.key) != trial:
        return False
    del left[trial.key]
    return True


async def past_scenarios(
    workspace: str,
    vector: NDArray[np.float32],
    statistics: Mapping[ToolKey, ToolStatistics],
    *,
    index: VectorIndex,
    memory: Memory,
) -> PastScenarios:
    """The past scenarios of these tools nearest to a scenario, of cosine 0.5 and above.

    Args:
        workspace: whose.
        vector: of the scenario; shape (dimension,), unit length.
        statistics: of the tools; they name the documents.
        index: where the vectors are.
        memory: where the documents are read.

    Raises:
        VectorIndexError, StoreError: when these cannot answer.
    """
    ids = [each for known in statistics.values() for each in known.scenarios]
    if not ids:
        return PastScenarios()
    query = IndexQuery(
        workspaces=(workspace,), kind="scenario", vector=vector, terms="",
        limit=min(len(ids), _PER_TOOL * len(statistics), _MAX_SCENARIOS),
        document_ids=tuple(ids), fused=False, least_similarity=LEAST_NEARNESS,
    )  # fmt: skip
    [near] = await index.search([query])
    documents = await memory.documents(workspace, [hit.document_id for hit in near])
    by_tool: dict[Owner, list[Hit]] = defaultdict(list)
    for hit in near:
        by_tool[hit.server_name, hit.tool_name].append(hit)
    return PastScenarios(by_tool, documents)
