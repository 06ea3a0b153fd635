"""Promotions: what is checked before one holds, and the way back. Everything is in the history."""

from collections.abc import Mapping
from dataclasses import replace

from aftercall import models as m
from aftercall.models.tools import parse_version
from aftercall.promotions_file import FilePathError, check_relative_path, render_promotions
from mongo.contents import PromotionEvent, StoredPromotion, promotion_command
from retrieval.answers.fitness.history import shown_promotion, statistics_with_marks
from retrieval.answers.fitness.promotions import inherited_quality, pair_of, read_former, status_of
from retrieval.knowledge.rows.log import read_promotion_history as events_of
from retrieval.knowledge.rows.registry import Registry, UnknownNamespaceError
from service.context import Context
from service.tools import InvalidChangeError, RefusedError

_MAX_HISTORY = 500
"""Changes of a namespace that are looked back on."""
MAX_WORDS = 10_000
"""Characters of a reason or a mutation, as many as of a scenario: each stands in every entry."""


class NothingBeforeError(LookupError):
    """There is nothing to go back to."""


class NotPromotedError(LookupError):
    """Nothing is promoted in the namespace."""


async def promote(
    context: Context, workspace: str, namespace: str, promotion: m.Promotion
) -> m.PromotionStatus:
    """Let an evolved version stand in for the original; the same again changes nothing.

    An `UnknownNamespaceError` where no tool serves the namespace; an `InvalidChangeError` where its
    file is no safe path, or its words are too long; a `RefusedError` where it is not above the
    original's version, or has neither a file nor a registered tool.
    """
    _check(promotion)
    promotion = shown_promotion(promotion, context.redactor)
    async with context.changing:
        registry = await context.memory.read_registry(workspace)
        _check_served(registry, namespace)
        stored = registry.promotions.get(namespace)
        if stored is None or not _says_the_same(promotion, stored.promotion):
            [stored] = await _prepared(context, workspace, registry, {namespace: promotion})
            await _change(context, workspace, [_event(context, stored, "promoted")])
            registry = await context.memory.read_registry(workspace)
    return await _status(context, registry, stored)


async def read_promotion(context: Context, workspace: str, namespace: str) -> m.PromotionStatus:
    """Return what is promoted in a namespace, and how it fares."""
    registry = await context.memory.read_registry(workspace)
    return await _status(context, registry, _held_in(registry, namespace))


async def remove_promotion(context: Context, workspace: str, namespace: str) -> None:
    """Let the original serve again."""
    async with context.changing:
        held = _held_in(await context.memory.read_registry(workspace), namespace)
        await _change(context, workspace, [_removed(context, held)])


async def promotion_history(
    context: Context, workspace: str, namespace: str, limit: int
) -> m.PromotionHistory:
    """Return the latest changes in a namespace, newest first.

    None where nothing was ever promoted.
    """
    if not (events := await events_of(context.store.events, workspace, namespace, limit)):
        _check_served(await context.memory.read_registry(workspace), namespace)
    changes = [
        m.PromotionChange(
            at=each.at,
            action=each.action,
            promotion=each.promoted and shown_promotion(each.promoted.promotion, context.redactor),
        )
        for each in events
    ]
    return m.PromotionHistory(namespace=namespace, changes=changes)


async def roll_back(context: Context, workspace: str, namespace: str) -> m.PromotionHistory:
    """Undo the latest change that is not undone yet; the history, newest first.

    A `NothingBeforeError` where all is undone, or nothing was ever promoted; an
    `UnknownNamespaceError` where no tool serves it either.
    """
    async with context.changing:
        events = await events_of(context.store.events, workspace, namespace, _MAX_HISTORY)
        is_whole = len(events) < _MAX_HISTORY
        possible, promoted = read_former(events, is_whole=is_whole)
        if possible:
            event = PromotionEvent(workspace, namespace, context.clock(), "rolled_back", promoted)
            await _change(context, workspace, [event])
    history = await promotion_history(context, workspace, namespace, _MAX_HISTORY)
    if not possible:
        raise NothingBeforeError(
            f"there is nothing to go back to in {namespace[:80]!r}; the original serves it"
            if is_whole
            else f"only the latest {_MAX_HISTORY} changes are looked back on, and all of them "
            "are undone; promote the version that is to serve"
        )
    return history


async def export_promotions(context: Context, workspace: str) -> str:
    """Return all promotions, as the text of `.tool_promotions.json`."""
    held = (await context.memory.read_registry(workspace)).promotions
    return render_promotions(
        {name: shown_promotion(held[name].promotion, context.redactor) for name in sorted(held)}
    )


async def import_promotions(
    context: Context, workspace: str, promotions: Mapping[str, m.Promotion]
) -> m.PromotionsReceipt:
    """Let just these promotions hold, all or none, served or not; raises as `promote`, by entry."""
    for name, promotion in promotions.items():
        _check(promotion, _place(name))
    clean = {name: shown_promotion(each, context.redactor) for name, each in promotions.items()}
    async with context.changing:
        registry = await context.memory.read_registry(workspace)
        held = registry.promotions
        same = {
            name
            for name in clean.keys() & held.keys()
            if _says_the_same(clean[name], held[name].promotion)
        }
        removed = sorted(held.keys() - clean.keys())
        new = {name: each for name, each in clean.items() if name not in same}
        prepared = await _prepared(context, workspace, registry, new, is_file=True)
        events = [_event(context, each, "imported") for each in prepared]
        events += [_removed(context, held[name]) for name in removed]
        await _change(context, workspace, events)
    return m.PromotionsReceipt(
        added=sorted(new.keys() - held.keys()),
        changed=sorted(new.keys() & held.keys()),
        removed=removed,
        unchanged=sorted(same),
        unknown_namespaces=sorted(name for name in clean if not registry.in_namespace(name)),
    )


async def _prepared(
    context: Context,
    workspace: str,
    registry: Registry,
    promotions: Mapping[str, m.Promotion],
    *,
    is_file: bool = False,
) -> list[StoredPromotion]:
    now, held = context.clock(), registry.promotions
    new = {
        name: StoredPromotion(
            workspace, name, each.model_copy(update={"promoted_at": each.promoted_at or now})
        )
        for name, each in promotions.items()
    }
    after = Registry(registry.by_id.values(), {**held, **new}.values())
    pairs = {name: (pair_of(registry, name), pair_of(after, name)) for name in new}
    for name, (_, pair) in pairs.items():
        if promotions[name].evolved_file is None and pair is None:
            raise RefusedError(
                f"{_place(name) if is_file else ''}there is neither an evolvedFile nor a "
                f"registered tool of version {promotions[name].evolved_version} with evolvedFrom; "
                "give the file, or put the tool first"
            )
    keys = {key for both in pairs.values() for pair in both if pair for key in pair.keys}
    statistics = await statistics_with_marks(
        list(keys), memory=context.memory, log=context.store.events
    )
    return [
        replace(
            stored,
            inherited_quality=inherited_quality(
                stored, pairs[name][1], held.get(name), pairs[name][0], statistics, now=now
            ),
        )
        for name, stored in new.items()
    ]


async def _status(
    context: Context, registry: Registry, stored: StoredPromotion
) -> m.PromotionStatus:
    pair = pair_of(registry, stored.namespace)
    statistics = await context.memory.read_statistics(pair.keys) if pair else {}
    status = status_of(stored, pair, statistics, now=context.clock())
    words = {"reason": status.reason, "mutation": status.mutation}
    return status.model_copy(
        update={name: context.redactor.text(text) for name, text in words.items()}
    )


async def _change(context: Context, workspace: str, events: list[PromotionEvent]) -> None:
    if events:
        held = (await context.memory.read_registry(workspace)).promotions
        commands = [
            promotion_command(each, held.get(each.namespace), context.caller.principal)
            for each in events
        ]
        try:
            await context.store.events.append(
                workspace, [event for event, _ in commands], [state for _, state in commands]
            )
        finally:  # of a change that failed it is not sure whether it was stored
            context.memory.forget_state(workspace)
        context.indexer.wake_learner()
        for each in events:
            await context.note(workspace, f"promotion.{each.action}", each.namespace)


def _event(context: Context, stored: StoredPromotion, action: m.PromotionAction) -> PromotionEvent:
    return PromotionEvent(stored.workspace, stored.namespace, context.clock(), action, stored)


def _removed(context: Context, held: StoredPromotion) -> PromotionEvent:
    return replace(_event(context, held, "removed"), promoted=None)


def _check(promotion: m.Promotion, place: str = "") -> None:
    evolved, original = promotion.evolved_version, promotion.original_version
    if parse_version(evolved) <= parse_version(original):
        raise RefusedError(
            f"{place}evolvedVersion: {evolved} is not above originalVersion {original}; "
            "to go back to an earlier version, roll the promotion back"
        )
    if promotion.evolved_file is not None:
        try:
            check_relative_path(promotion.evolved_file)
        except FilePathError as error:
            raise InvalidChangeError(f"{place}evolvedFile: {error}") from None
    for name, words in (("reason", promotion.reason), ("mutation", promotion.mutation)):
        if len(words) > MAX_WORDS:
            raise InvalidChangeError(
                f"{place}{name}: has {len(words):,} characters, at most {MAX_WORDS:,} are kept; "
                "say it in fewer words"
            )


def _check_served(registry: Registry, namespace: str) -> None:
    if not registry.in_namespace(namespace):
        raise UnknownNamespaceError(namespace, registry.nearest_names(namespace))


def _held_in(registry: Registry, namespace: str) -> StoredPromotion:
    if (stored := registry.promotions.get(namespace)) is None:
        _check_served(registry, namespace)
        raise NotPromotedError(f"nothing is promoted in {namespace[:80]!r}; the original serves it")
    return stored


def _says_the_same(new: m.Promotion, held: m.Promotion) -> bool:
    """Return whether it states what holds already. A file has whole seconds.

    No time at all fits any.
    """
    if new.promoted_at is None:
        return new.model_copy(update={"promoted_at": held.promoted_at}) == held
    return _in_seconds(new) == _in_seconds(held)


def _place(entry: str) -> str:
    return f"entry {entry[:80]!r}: "


def _in_seconds(promotion: m.Promotion) -> m.Promotion:
    at = promotion.promoted_at
    return promotion.model_copy(update={"promoted_at": at and at.replace(microsecond=0)})
