"""What is remembered of tools: their past failures, how they evolved, and marks not yet learned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from aftercall import models as m
from aftercall.redaction import Redactor
from embeddings.protocol import Embedder
from mongo.contents import FailureRecord
from mongo.protocol import EventLog
from mongo.records import ToolKey
from retrieval.answers.fitness.score import failure_weight
from retrieval.index.protocol import Hit, IndexQuery, VectorIndex
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.rows.documents import Kind
from retrieval.knowledge.rows.log import read_marks as list_marks
from retrieval.knowledge.rows.log import read_promotion_history
from retrieval.knowledge.rows.registry import UnknownToolError, names_like, offer_tool
from retrieval.knowledge.rows.statistics import (
    MAX_TRIALS,
    NO_VERSION,
    ToolTrials,
    Trial,
    VersionStatistics,
    merge_trials,
    trial_moment,
    trial_of,
)

_MAX_SHOWN = 500
"""Characters of a past scenario, a message or a reason in an answer."""
_MAX_HISTORY = 500
"""Changes of a namespace that are looked through for the promotion that was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHistory:
    """Answers what is remembered of tools."""

    log: EventLog
    """The truth about marks and promotions."""
    memory: Memory
    index: VectorIndex
    embedder: Embedder
    redactor: Redactor
    """Masks secrets before anything is answered."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def list_failures(
        self, workspace: str, tool_id: str, *, scenario: str | None, limit: int
    ) -> m.ToolFailures:
        """Return the failures of a tool in all its versions.

        Nearest to the scenario first, else latest.

        Without a scenario the similarity is 0. A failure weighs 1 when it is fresh, less with time
        and with each later success in the same scenario.
        """
        registry = await self.memory.read_registry(workspace)
        stored = registry.by_id.get(tool_id)
        if stored is None:
            raise UnknownToolError(tool_id, names_like(tool_id, registry.by_id))
        keys = list(dict.fromkeys((stored.tool_key, offer_tool(registry, stored).key)))
        statistics = await self.memory.read_statistics(keys)
        ids = [each for known in statistics.values() for each in known.scenarios]
        marks: list[FailureRecord] = []
        similarity: dict[str, float] = {}
        if scenario is None:
            marks = [each for key in keys for each in await list_marks(self.log, key, limit)]
        elif ids:
            hits = await self._find_nearest(workspace, "scenario", scenario, len(ids), tuple(ids))
            similarity = {hit.document_id: hit.similarity for hit in hits}
            ids = list(similarity)
        documents = await self.memory.read_documents(workspace, ids)
        said: list[tuple[Trial, str, float, list[float], str | None]] = [
            (_trial_of_mark(each), each.scenario, 0.0, [], each.error_message) for each in marks
        ]
        for document_id, document in documents.items():
            near = similarity.get(document_id, 0.0)
            successes = sorted(trial.at for trial in document.trials if trial.is_success)
            said += [
                (trial, document.text, near, successes, document.message)
                for trial in document.trials
                if not trial.is_success
            ]
        once: dict[str, tuple[Trial, str, float, list[float], str | None]] = {}
        for each in said:
            once.setdefault(each[0].key, each)  # a mark states more
        found = [
            m.SimilarFailure(
                scenario=text,
                similarity=near,
                weight=failure_weight(trial, successes, self.clock().timestamp()),
                at=trial_moment(trial),
                severity=trial.severity,
                error_message=message,
            )
            for trial, text, near, successes, message in once.values()
        ]
        first = sorted(found, key=lambda each: (each.similarity, each.at), reverse=True)[:limit]
        learned = (tag for known in statistics.values() for tag in known.list_negative_tags())
        marked = [(each, [f"severity_{each.severity}"] if each.severity else []) for each in first]
        tagged = [
            each.model_copy(update={"tags": ["tool_failure", tool_id, *severity]})
            for each, severity in marked
        ]
        return m.ToolFailures(
            failures=[shown_failure(each, self.redactor) for each in tagged],
            negative_tags=list(dict.fromkeys([*stored.tool.negative_tags, *learned])),
        )

    async def find_evolutions(self, workspace: str, request: m.EvolutionRequest) -> m.EvolutionList:
        """Promotions of the past and present, nearest to the scenario first."""
        hits = await self._find_nearest(workspace, "evolution", request.scenario, request.limit)
        namespaces = dict.fromkeys(hit.tool_name or "" for hit in hits)
        promoted = {
            (name, event.promoted.promotion.evolved_version): event.promoted.promotion
            for name in namespaces
            for event in reversed(
                await read_promotion_history(self.log, workspace, name, _MAX_HISTORY)
            )
            if event.promoted is not None
        }
        return m.EvolutionList(
            evolutions=[
                m.Evolution(
                    namespace=hit.tool_name or "",
                    promotion=shown_promotion(promotion, self.redactor),
                    similarity=hit.similarity,
                )
                for hit in hits
                if (promotion := promoted.get((hit.tool_name or "", hit.version))) is not None
            ]
        )

    async def _find_nearest(
        self,
        workspace: str,
        kind: Kind,
        scenario: str,
        limit: int,
        document_ids: tuple[str, ...] | None = None,
    ) -> list[Hit]:
        [vector] = await self.embedder.embed([self.redactor.text(scenario)], "query")
        query = IndexQuery(
            workspaces=(workspace,), kind=kind, vector=vector,
            terms="", limit=limit, document_ids=document_ids,
        )  # fmt: skip
        [hits] = await self.index.search_points([query])
        return hits


def _trial_of_mark(mark: FailureRecord) -> Trial:
    named = mark.execution_id or mark.mark_id
    return trial_of(mark.marked_at, named, mark.severity, mark.principal)


def shown_failure(failure: m.SimilarFailure, redactor: Redactor) -> m.SimilarFailure:
    """Return a past failure for an answer: its words are some caller's, so masked and bounded."""
    message = failure.error_message
    return failure.model_copy(
        update={
            "scenario": shown_text(failure.scenario, redactor),
            "error_message": None if message is None else shown_text(message, redactor),
        }
    )


def shown_promotion(promotion: m.Promotion, redactor: Redactor) -> m.Promotion:
    """Return a promotion for an answer, whole: its file is exchanged as it is."""
    said = {"reason": promotion.reason, "mutation": promotion.mutation}
    return promotion.model_copy(update={name: redactor.text(text) for name, text in said.items()})


def shown_text(text: str, redactor: Redactor) -> str:
    """Return a text for an answer: without secrets, at most 500 characters."""
    masked = redactor.text(text)
    return masked if len(masked) <= _MAX_SHOWN else f"{masked[: _MAX_SHOWN - 1]}…"


async def statistics_with_marks(
    tools: Sequence[ToolKey], *, memory: Memory, log: EventLog
) -> dict[ToolKey, ToolTrials]:
    """Return the statistics of tools, with the trials of all marks that are stored.

    `Memory.read_statistics` knows of a mark a moment after it was stored. This function reads the
    store once for each tool, so it is not for the hot path. The counts of successes and failures
    are as they were learned.
    """
    found, known_of = {}, await memory.read_statistics(tools)
    for tool in dict.fromkeys(tools):
        known = known_of.get(tool, ToolTrials())
        versions = dict(known.versions)
        for mark in await list_marks(log, tool, MAX_TRIALS):  # learned ones change nothing
            version = versions.get(mark.version or NO_VERSION, VersionStatistics())
            trials = merge_trials(version.trials, [_trial_of_mark(mark)])
            versions[mark.version or NO_VERSION] = replace(version, trials=trials)
        found[tool] = replace(known, versions=versions)
    return found
