"""Scenarios: what the versions of a tool were used for, one document for each distinct wording.

Wordings are told apart by their letters: case, white space and digits make no difference, so that
"Translate  3 pages" and "translate 12 pages" meet. Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TypeAlias

from embeddings.text import MAX_TEXT
from mongo.records import DocumentRow, ToolKey
from retrieval.fitness.statistics import (
    MAX_SCENARIO_TRIALS,
    MAX_SCENARIOS,
    Trial,
    merged,
    trial_of_call,
    with_trial,
)
from retrieval.knowledge.documents import MAX_EXECUTION_IDS, Document, document_id
from retrieval.knowledge.rules import remember

DocumentKey: TypeAlias = tuple[str, str]
"""Workspace and document id."""

_MAX_MESSAGE = 500
"""Characters kept of an error message: it is shown, not searched."""

_DIGITS = re.compile(r"\d+")
_KNOWN_WORDINGS = 2_048
"""Whose ids are kept: a batch asks for each twice, and calls of a tool repeat their contexts."""


@dataclass(frozen=True, slots=True)
class Use:
    """One call, or one mark, in a scenario."""

    tool: ToolKey
    version: str
    """Empty where none is known."""
    scenario: str
    trial: Trial
    at: datetime
    message: str | None = None
    agent: str | None = None
    execution_id: str | None = None


def normalised(scenario: str) -> str:
    """A wording as it is compared: at most what is embedded of it, digits masked."""
    return _DIGITS.sub("#", " ".join(scenario[:MAX_TEXT].casefold().split()))


def scenario_id(tool: ToolKey, version: str, scenario: str) -> str:
    """The id of a scenario's document: the same for all wordings that are normalised alike."""
    return _scenario_id(tool, version, scenario[:MAX_TEXT])


@lru_cache(_KNOWN_WORDINGS)
def _scenario_id(tool: ToolKey, version: str, scenario: str) -> str:
    what = f"{version}\x1f{normalised(scenario)}"
    return document_id(tool.workspace, "scenario", tool.server_name, tool.tool_name, what)


class ScenarioDocuments:
    """The scenario documents that a batch touches, and what becomes of them.

    Args:
        known: those that the store has; changed in place.
    """

    def __init__(self, known: dict[DocumentKey, Document]) -> None:
        self.documents = known
        self._changed: dict[DocumentKey, bool] = {}
        """Those to be stored; whether they are new."""
        self._evicted: dict[DocumentKey, None] = {}

    def learn(self, use: Use, scenarios: dict[str, datetime]) -> None:
        """Add a use to its scenario's document.

        Args:
            use: what happened.
            scenarios: the tool's table (`ToolStatistics.scenarios`), updated in place. A full one
                takes a new scenario only for a failure, in the place of the least recent.
        """
        identity = scenario_id(use.tool, use.version, use.scenario)
        key = (use.tool.workspace, identity)
        if identity not in scenarios and not self._has_room(use, identity, scenarios):
            return
        scenarios[identity] = max(use.at, scenarios.get(identity, use.at))
        document = self.documents.get(key)
        if document is None:
            self.documents[key] = _document(use, identity)
            self._changed[key] = True
        else:
            _merge(document, use)
            self._changed.setdefault(key, False)

    def rows(self) -> Iterator[DocumentRow]:
        """What is to be stored."""
        for key, is_new in self._changed.items():
            if key in self.documents:
                yield DocumentRow(*key, self.documents[key].model_dump_json().encode(), is_new)

    def removed(self) -> list[DocumentKey]:
        """What made room for others."""
        return [key for key in self._evicted if key not in self.documents]

    def _has_room(self, use: Use, identity: str, scenarios: dict[str, datetime]) -> bool:
        if len(scenarios) < MAX_SCENARIOS:
            return True
        if use.trial.is_success:
            return False
        latest_use, least = min((at, each) for each, at in scenarios.items())
        if (use.at, identity) < (latest_use, least):
            return False  # a late arrival, from before all that is known
        del scenarios[least]
        evicted = (use.tool.workspace, least)
        self.documents.pop(evicted, None)
        self._changed.pop(evicted, None)
        self._evicted[evicted] = None
        return True


def _document(use: Use, identity: str) -> Document:
    return Document(
        document_id=identity,
        kind="scenario",
        server_name=use.tool.server_name,
        tool_name=use.tool.tool_name,
        text=use.scenario[:MAX_TEXT],
        terms="",  # found by nearness alone; terms would count in the IDF of those for tools
        count=1,
        agents=[use.agent] if use.agent else [],
        execution_ids=[use.execution_id] if use.execution_id else [],
        last_seen=use.at,
        version=use.version,
        trials=[use.trial],
        message=_short(use.message),
    )


def _merge(document: Document, use: Use) -> None:
    """Add a use in place: each call counts once, the latest failure's message is shown."""
    known = document.trials
    if use.message:
        failures = (each.at for each in known if not each.is_success)
        if document.message is None or use.trial.at >= max(failures, default=use.trial.at):
            document.message = _short(use.message)
    if trial_of_call(known, use.trial.key) is None:
        document.count += 1
        document.trials = with_trial(known, use.trial, MAX_SCENARIO_TRIALS)
    else:
        document.trials = merged(known, [use.trial], limit=MAX_SCENARIO_TRIALS)
    document.last_seen = max(use.at, document.last_seen or use.at)
    if use.agent:
        remember(document.agents, use.agent)
    if use.execution_id:
        remember(document.execution_ids, use.execution_id, MAX_EXECUTION_IDS)


def _short(message: str | None) -> str | None:
    return message[:_MAX_MESSAGE] if message else None
