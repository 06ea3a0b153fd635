"""The collections of a MongoDB log store, how their records are named, and what waits in them.

What all records have in common: `_id` is `key(workspace, ...)`, `workspace` is a field of its own
(the shard key: every filter carries it), `server_name` is '' for a tool without a server, moments
are microseconds since 1970 (`..._us`) where they must come back exact, JSON is text and learned
rows are bytes under `data`. `position` (and a tool's `revision`) is reserved by
`mongo.mongodb.positions` before a record is written.

What waits to be learned from says so in its own field `queued`, so that a record and its place in
the queue are one write:

======== =========================================================================
absent   every generation learned from it
0        new: no generation did (`NEW`); what is inserted or put anew has this
g        only generation g has not: a shadow that was opened after the others learned
-g       only the shadow g has: the generation before it has not
======== =========================================================================

Filter by `db.pending` and `db.learned`. Only commits, shadows and restoring change the field
otherwise (`mongo.mongodb.queues`).
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.read_preferences import Primary, _ServerMode

Record: TypeAlias = dict[str, Any]
"""`Any` as in `pymongo`: what a field holds is the business of the module that wrote it."""

Collection: TypeAlias = AsyncCollection[Record]

NEW = 0
"""The value of `queued` of what no generation has learned from yet."""

STORE_ID = "store"
"""The `_id` of the only record of STORE: layout, generation, shadow, and facts set by a switch."""

_SEPARATOR = "\x01"
_ESCAPE = "\x02"

Shared = Literal[
    "executions", "schemas", "tools", "suggestions", "outcomes", "marks", "corrections",
    "recommendations", "promotions", "promotion_history", "usage", "patterns", "answers", "facts",
    "counters", "leases", "journal", "changes", "store", "changed_tools", "steps",
]  # fmt: skip

Derived = Literal["knowledge", "fitness", "health", "documents", "repairs", "ties"]

SHARED_NAMES: dict[Shared, str] = {
    "executions": "TOOL_EXECUTION_LOG",
    "schemas": "INPUT_SCHEMAS",
    "tools": "TOOLS",
    "changed_tools": "CHANGED_TOOLS",
    "suggestions": "SUGGESTIONS",
    "outcomes": "SUGGESTION_OUTCOMES",
    "marks": "FAILURE_MARKS",
    "corrections": "CORRECTIONS",
    "recommendations": "RECOMMENDATIONS",
    "promotions": "PROMOTIONS",
    "promotion_history": "PROMOTION_HISTORY",
    "usage": "TOOL_STATISTICS",
    "patterns": "REFLECTION_PATTERNS",
    "answers": "SUGGESTION_ANSWERS",
    "facts": "FACTS",
    "counters": "COUNTERS",
    "leases": "LEASES",
    "journal": "JOURNAL",
    "steps": "CHANGE_STEPS",
    "changes": "CHANGES",
    "store": "STORE",
}
"""Collections that all generations share."""

DERIVED_NAMES: dict[Derived, str] = {
    "knowledge": "TOOL_KNOWLEDGE",
    "fitness": "TOOL_FITNESS",
    "health": "TOOL_HEALTH",
    "documents": "DOCUMENTS",
    "repairs": "REPAIRS",
    "ties": "CORRECTION_TOOLS",
}
"""What was learned: a collection for each generation, the first without a suffix."""


def key(*parts: str) -> str:
    """The `_id` of a record: the workspace first, then what tells it from others there.

    Keys are in the order of their parts, whatever characters those hold.
    """
    return _SEPARATOR.join(
        part.replace(_ESCAPE, _ESCAPE * 2).replace(_SEPARATOR, _ESCAPE + _SEPARATOR)
        for part in parts
    )


def within(*parts: str) -> dict[str, str]:
    """The condition on the `_id` of all records whose keys begin with these parts and go on."""
    return {"$gte": key(*parts, ""), "$lt": key(*parts) + _ESCAPE}


def derived_name(collection: Derived, generation: int) -> str:
    """The name of a collection of what one generation learned."""
    base = DERIVED_NAMES[collection]
    return base if generation == 1 else f"{base}_{generation}"


class Collections:
    """The collections as one generation sees them.

    Args:
        database: theirs, with the write and read concerns that all are used with.
        generation: whose derived collections and queues these are.
        analytics: read preference of `analytics`.
    """

    def __init__(
        self,
        database: AsyncDatabase[Record],
        generation: int = 1,
        analytics: _ServerMode | None = None,
    ) -> None:
        self.database = database
        self.generation = generation
        self._analytics = analytics or Primary()
        self.executions = self._shared("executions")
        self.schemas = self._shared("schemas")
        self.tools = self._shared("tools")
        self.changed_tools = self._shared("changed_tools")
        """One record for each id and name that was ever put or deleted; queued or not."""
        self.suggestions = self._shared("suggestions")
        self.outcomes = self._shared("outcomes")
        self.marks = self._shared("marks")
        self.corrections = self._shared("corrections")
        self.recommendations = self._shared("recommendations")
        self.promotions = self._shared("promotions")
        self.promotion_history = self._shared("promotion_history")
        self.usage = self._shared("usage")
        self.patterns = self._shared("patterns")
        self.answers = self._shared("answers")
        self.facts = self._shared("facts")
        self.counters = self._shared("counters")
        self.leases = self._shared("leases")
        self.journal = self._shared("journal")
        self.steps = self._shared("steps")
        self.changes = self._shared("changes")
        self.store = self._shared("store")
        self.knowledge = self._derived("knowledge")
        self.fitness = self._derived("fitness")
        self.health = self._derived("health")
        self.documents = self._derived("documents")
        self.repairs = self._derived("repairs")
        self.ties = self._derived("ties")
        """The tools that corrections are about: learned, where what the user said is not."""

    @property
    def pending(self) -> Mapping[str, list[int]]:
        """The condition on `queued` of what this generation has not learned from."""
        return {"$in": self.waiting}

    @property
    def learned(self) -> Mapping[str, list[int]]:
        """The condition on `queued` of what this generation has learned from."""
        return {"$nin": self.waiting}

    @property
    def waiting(self) -> list[int]:
        """The values of `queued` of what this generation has not learned from."""
        return [NEW, self.generation, -(self.generation + 1)]

    def analytics(self, collection: Collection) -> Collection:
        """The collection for reads that stream over much of it and may be a little behind."""
        return collection.with_options(read_preference=self._analytics)

    def of_generation(self, generation: int) -> "Collections":
        """The same store as another generation sees it."""
        return Collections(self.database, generation, self._analytics)

    def _shared(self, collection: Shared) -> Collection:
        return self.database[SHARED_NAMES[collection]]

    def _derived(self, collection: Derived) -> Collection:
        return self.database[derived_name(collection, self.generation)]
