"""Promotions: what is checked before one holds, and the way back. Everything is in the history."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from aftercall.models import (
    Promotion,
    PromotionAction,
    PromotionChange,
    PromotionHistory,
    PromotionsReceipt,
    PromotionStatus,
)
from aftercall.models.tools import parse_version
from aftercall.promotions_file import UnsafePathError, check_relative_path, render_promotions
from aftercall.redaction import Redactor
from mongo.contents import PromotionEvent, StoredPromotion, promotion_command
from mongo.protocol import EventLog
from retrieval.fitness.history import shown_promotion, statistics_with_marks
from retrieval.fitness.promotions import (
    Pair,
    before,
    inherited_quality,
    pair_of,
    status_of,
)
from retrieval.fitness.registry import Registry, UnknownNamespaceError
from retrieval.log import promotion_history
from retrieval.memory import Memory
from service.changes import (
    Changes,
    InvalidChangeError,
    NothingBeforeError,
    NotPromotedError,
    RefusedError,
)

_MAX_HISTORY = 500
"""Changes of a namespace that are looked back on."""


class Promotions:
    """Promotes, rolls back, imports and exports; tells the memory and the indexer what changed.

    Args:
        log: where promotions are kept.
        memory: told when they change.
        redactor: masks secrets before anything is stored, and again before it is answered.
        changes: shared with whatever else changes tools and promotions.
        on_change: called when something is to be learned.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        memory: Memory,
        redactor: Redactor,
        changes: Changes,
        on_change: Callable[[], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log = log
        self._memory = memory
        self._redactor = redactor
        self._redactor = redactor
        self._changes = changes
        self._on_change = on_change
        self._clock = clock

    async def promote(
        self, workspace: str, namespace: str, promotion: Promotion
    ) -> PromotionStatus:
        """Let an evolved version stand in for the original; the same again changes nothing.

        Raises:
            UnknownNamespaceError: no tool serves the namespace.
            RefusedError: it is not above the original's version, its file is no safe path, its
                words are too long, or it has neither a file nor a registered tool.
            StoreError: when it cannot be stored.
        """
        _check_promotion(promotion)
        promotion = shown_promotion(promotion, self._redactor)
        async with self._changes.one_at_a_time():
            registry = await self._memory.registry(workspace)
            if not registry.in_namespace(namespace):
                raise UnknownNamespaceError(namespace, registry.nearest_names(namespace))
            known = registry.promotions.get(namespace)
            if known is not None and _says_the_same(promotion, known.promotion):
                return await self._status(registry, known)
            [stored] = await self._prepared(workspace, registry, {namespace: promotion})
            await self._change(workspace, [self._event(stored, "promoted")])
        return await self._status(await self._memory.registry(workspace), stored)

    async def read(self, workspace: str, namespace: str) -> PromotionStatus:
        """What is promoted in a namespace, and how it fares.

        Raises:
            NotPromotedError, UnknownNamespaceError: nothing is.
            StoreError: when the store cannot say.
        """
        registry = await self._memory.registry(workspace)
        return await self._status(registry, _held_in(registry, namespace))

    async def remove(self, workspace: str, namespace: str) -> None:
        """Let the original serve again.

        Raises:
            NotPromotedError, UnknownNamespaceError: nothing is promoted.
            StoreError: when it cannot be done.
        """
        async with self._changes.one_at_a_time():
            _held_in(await self._memory.registry(workspace), namespace)
            await self._change(workspace, [self._none(workspace, namespace, "removed")])

    async def history(self, workspace: str, namespace: str, limit: int) -> PromotionHistory:
        """The latest changes in a namespace, newest first; none where nothing was ever promoted.

        Raises:
            UnknownNamespaceError: no tool serves it and nothing was promoted in it.
            StoreError: when the store cannot say.
        """
        events = await promotion_history(self._log, workspace, namespace, limit)
        if not events:
            registry = await self._memory.registry(workspace)
            if not registry.in_namespace(namespace):
                raise UnknownNamespaceError(namespace, registry.nearest_names(namespace))
        return PromotionHistory(
            namespace=namespace, changes=[self._change_shown(e) for e in events]
        )

    async def roll_back(self, workspace: str, namespace: str) -> PromotionHistory:
        """Undo the latest change that is not undone yet; the history, newest first.

        Raises:
            NothingBeforeError: all is undone, or nothing was ever promoted.
            UnknownNamespaceError: no tool serves it and nothing was promoted in it.
            StoreError: when it cannot be done.
        """
        async with self._changes.one_at_a_time():
            events = await promotion_history(self._log, workspace, namespace, _MAX_HISTORY)
            is_whole = len(events) < _MAX_HISTORY
            possible, promoted = before(events, is_whole=is_whole)
            if possible:
                event = self._none(workspace, namespace, "rolled_back")
                if promoted is not None:
                    event = self._event(promoted, "rolled_back")
                await self._change(workspace, [event])
        history = await self.history(workspace, namespace, _MAX_HISTORY)
        if not possible:
            raise NothingBeforeError(
                f"there is nothing to go back to in {namespace[:80]!r}; the original serves it"
                if is_whole
                else f"only the latest {_MAX_HISTORY} changes are looked back on, and all of them "
                "are undone; promote the version that is to serve"
            )
        return history

    async def export_file(self, workspace: str) -> str:
        """All promotions, as the text of `.tool_promotions.json`.

        Raises:
            StoreError: when the store cannot say.
        """
        registry = await self._memory.registry(workspace)
        return render_promotions(
            {
                name: shown_promotion(stored.promotion, self._redactor)
                for name, stored in sorted(registry.promotions.items())
            }
        )

    async def import_file(
        self, workspace: str, promotions: Mapping[str, Promotion]
    ) -> PromotionsReceipt:
        """Let exactly these promotions hold, all or none of them.

        A namespace that no tool serves yet is promoted all the same.

        Raises:
            RefusedError: as `promote`, naming the entry; nothing was imported.
            StoreError: when it cannot be stored.
        """
        for name, promotion in promotions.items():
            _check_promotion(promotion, entry=name)
        clean = {name: shown_promotion(each, self._redactor) for name, each in promotions.items()}
        async with self._changes.one_at_a_time():
            registry = await self._memory.registry(workspace)
            held = registry.promotions
            same = [
                name
                for name, new in clean.items()
                if name in held and _says_the_same(new, held[name].promotion)
            ]
            changed = [name for name in clean if name in held and name not in same]
            added = [name for name in clean if name not in held]
            removed = sorted(held.keys() - clean.keys())
            new = {name: clean[name] for name in (*added, *changed)}
            prepared = await self._prepared(workspace, registry, new, is_file=True)
            events = [self._event(each, "imported") for each in prepared]
            events += [self._none(workspace, name, "removed") for name in removed]
            await self._change(workspace, events)
        return PromotionsReceipt(
            added=sorted(added),
            changed=sorted(changed),
            removed=removed,
            unchanged=sorted(same),
            unknown_namespaces=sorted(n for n in clean if not registry.in_namespace(n)),
        )

    async def _prepared(
        self,
        workspace: str,
        registry: Registry,
        promotions: Mapping[str, Promotion],
        *,
        is_file: bool = False,
    ) -> list[StoredPromotion]:
        """The promotions with their times and the qualities that they inherit."""
        now, held = self._clock(), registry.promotions
        new = {
            name: StoredPromotion(workspace, name, _dated(promotion, now))
            for name, promotion in promotions.items()
        }
        told = Registry(registry.by_id.values(), {**held, **new}.values())
        pairs = {name: pair_of(told, name) for name in new}
        held_pairs = {name: pair_of(registry, name) for name in new}
        for name, pair in pairs.items():
            _check_there_is_one(promotions[name], pair, entry=name if is_file else None)
        keys = {
            key for pair in (*pairs.values(), *held_pairs.values()) if pair for key in pair.keys
        }
        statistics = await statistics_with_marks(list(keys), memory=self._memory, log=self._log)
        return [
            replace(
                stored,
                inherited_quality=inherited_quality(
                    stored, pairs[name], held.get(name), held_pairs[name], statistics, now=now
                ),
            )
            for name, stored in new.items()
        ]

    async def _status(self, registry: Registry, stored: StoredPromotion) -> PromotionStatus:
        pair = pair_of(registry, stored.namespace)
        statistics = await self._memory.statistics(pair.keys) if pair else {}
        return self._redacted(status_of(stored, pair, statistics, now=self._clock()))

    async def _change(self, workspace: str, events: list[PromotionEvent]) -> None:
        if events:
            held = (await self._memory.registry(workspace)).promotions
            commands = [promotion_command(each, held.get(each.namespace)) for each in events]
            try:
                await self._log.append(
                    workspace, [event for event, _ in commands], [state for _, state in commands]
                )
            finally:  # of a change that failed it is not sure whether it was stored
                self._memory.forget_state(workspace)
            self._on_change()

    def _event(self, stored: StoredPromotion, action: PromotionAction) -> PromotionEvent:
        return PromotionEvent(stored.workspace, stored.namespace, self._clock(), action, stored)

    def _none(self, workspace: str, namespace: str, action: PromotionAction) -> PromotionEvent:
        return PromotionEvent(workspace, namespace, self._clock(), action, None)

    def _change_shown(self, event: PromotionEvent) -> PromotionChange:
        held = event.promoted
        promotion = None if held is None else shown_promotion(held.promotion, self._redactor)
        return PromotionChange(at=event.at, action=event.action, promotion=promotion)

    def _redacted(self, status: PromotionStatus) -> PromotionStatus:
        clean = {"reason": status.reason, "mutation": status.mutation}
        return status.model_copy(
            update={name: self._redactor.text(text) for name, text in clean.items()}
        )


MAX_WORDS = 10_000
"""Characters of a reason or a mutation, as many as of a scenario: each stands in every entry of the
history, and in the file."""


def _check_promotion(promotion: Promotion, *, entry: str | None = None) -> None:
    """That the promotion makes sense by itself.

    Args:
        promotion: as it was sent.
        entry: its name in a file, if it is from one; errors begin with it.

    Raises:
        InvalidChangeError: its file is no safe path, or its words are too long.
        RefusedError: it is not above the original's version.
    """
    place = _place(entry)
    evolved, original = promotion.evolved_version, promotion.original_version
    if parse_version(evolved) <= parse_version(original):
        raise RefusedError(
            f"{place}evolvedVersion: {evolved} is not above originalVersion {original}; "
            "to go back to an earlier version, roll the promotion back"
        )
    if promotion.evolved_file is not None:
        try:
            check_relative_path(promotion.evolved_file)
        except UnsafePathError as error:
            raise InvalidChangeError(f"{place}evolvedFile: {error}") from None
    for name, words in (("reason", promotion.reason), ("mutation", promotion.mutation)):
        if len(words) > MAX_WORDS:
            raise InvalidChangeError(
                f"{place}{name}: has {len(words):,} characters, at most {MAX_WORDS:,} are kept; "
                "say it in fewer words"
            )


def _check_there_is_one(promotion: Promotion, pair: Pair | None, *, entry: str | None) -> None:
    """That there is something to run under the promoted version.

    Args:
        promotion: as it was sent.
        pair: who would be promoted by it, and in whose place; None where nobody would.
        entry: as in `_check_promotion`.

    Raises:
        RefusedError: it names no file, and no such version is registered.
    """
    if promotion.evolved_file is None and pair is None:
        raise RefusedError(
            f"{_place(entry)}there is neither an evolvedFile nor a registered tool of version "
            f"{promotion.evolved_version} with evolvedFrom; give the file, or put the tool first"
        )


def _held_in(registry: Registry, namespace: str) -> StoredPromotion:
    """What is promoted in a namespace.

    Raises:
        NotPromotedError, UnknownNamespaceError: nothing is.
    """
    stored = registry.promotions.get(namespace)
    if stored is not None:
        return stored
    if not registry.in_namespace(namespace):
        raise UnknownNamespaceError(namespace, registry.nearest_names(namespace))
    raise NotPromotedError(f"nothing is promoted in {namespace[:80]!r}; the original serves it")


def _dated(promotion: Promotion, now: datetime) -> Promotion:
    """With a time: its own, else now."""
    if promotion.promoted_at is not None:
        return promotion
    return promotion.model_copy(update={"promoted_at": now})


def _says_the_same(new: Promotion, held: Promotion) -> bool:
    """Whether it says what holds already. A file has whole seconds; no time at all fits any."""
    if new.promoted_at is None:
        return new.model_copy(update={"promoted_at": held.promoted_at}) == held
    return _in_seconds(new) == _in_seconds(held)


def _place(entry: str | None) -> str:
    return "" if entry is None else f"entry {entry[:80]!r}: "


def _in_seconds(promotion: Promotion) -> Promotion:
    at = promotion.promoted_at
    return promotion.model_copy(update={"promoted_at": at and at.replace(microsecond=0)})
