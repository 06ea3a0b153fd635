"""Promotions: which evolved version stands in for the original of a namespace.

A promotion is checked before it holds, and can be rolled back. The history has every change.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from aftercall import models as m
from aftercall.models.tools import parse_version
from aftercall.promotions_file import (
    FilePathError,
    PromotionsFileError,
    check_relative_path,
    parse_promotions,
    render_promotions,
)
from mongo.contents import PromotionEvent, StoredPromotion, promotion_command
from retrieval.answers.fitness.history import shown_promotion, statistics_with_marks
from retrieval.answers.fitness.promotions import inherited_quality, pair_of, read_former, status_of
from retrieval.knowledge.rows.log import read_promotion_history
from retrieval.knowledge.rows.registry import Registry, UnknownNamespaceError
from service.context import Context, Space
from service.errors import (
    InvalidChangeError,
    MalformedJsonError,
    NothingBeforeError,
    NotPromotedError,
    ProblemError,
    RefusedError,
)
from service.requests import Admin, JsonRoute, Namespace, Read, parse_body, read_body

router = APIRouter(tags=["promotions"], route_class=JsonRoute)
_PATH = "/namespaces/{namespace:name}/promotion"
_MAX_HISTORY = 500
"""Changes of a namespace that are looked back on."""
MAX_WORDS = 10_000
"""Characters of a reason or a mutation, as many as of a scenario: each stands in every entry."""


class HistoryQuery(m.WireModel):
    """How many changes of a namespace are wanted."""

    limit: int = Field(default=50, ge=1, le=500)


@router.get(
    f"{_PATH}/history",
    summary="What was promoted in a namespace, and when",
    name="promotion_history",
)
async def list_promotion_history(
    space: Read, namespace: Namespace, query: Annotated[HistoryQuery, Query()]
) -> m.PromotionHistory:
    """Return the changes of a namespace, latest first.

    A change's `promotion` is null if the original served again.

    Raises:
        UnknownNamespaceError: nothing was ever promoted in it, and no tool serves it.
    """
    context, workspace = space
    if not (
        events := await read_promotion_history(
            context.store.events, workspace, namespace, query.limit
        )
    ):
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


@router.post(f"{_PATH}/rollback", summary="Back to what held before")
async def roll_back(space: Admin, namespace: Namespace) -> m.PromotionHistory:
    """Undo the latest change that is not undone yet; return the history, latest first.

    Before the first promotion the original served. Each call goes back one step further.

    Raises:
        NothingBeforeError: all is undone, or nothing was ever promoted.
        UnknownNamespaceError: nothing was ever promoted, and no tool serves it either.
    """
    context, workspace = space
    async with context.changing:
        events = await read_promotion_history(
            context.store.events, workspace, namespace, _MAX_HISTORY
        )
        is_whole = len(events) < _MAX_HISTORY
        possible, promoted = read_former(events, is_whole=is_whole)
        if possible:
            event = PromotionEvent(workspace, namespace, context.clock(), "rolled_back", promoted)
            await _append_events(space, [event])
    history = await list_promotion_history(space, namespace, HistoryQuery(limit=_MAX_HISTORY))
    if not possible:
        raise NothingBeforeError(
            f"there is nothing to go back to in {namespace[:80]!r}; the original serves it"
            if is_whole
            else f"only the latest {_MAX_HISTORY} changes are looked back on, and all of them "
            "are undone; promote the version that is to serve"
        )
    return history


@router.put(_PATH, summary="Promote an evolved version", name="promote")
async def promote_version(
    space: Admin, namespace: Namespace, promotion: m.Promotion
) -> m.PromotionStatus:
    """Promote an evolved version: it serves from now on, with the original's quality at first.

    It needs a file, or a registered tool of that version with `evolvedFrom`. Files are the
    callers': the service cannot see whether one exists. The same promotion again changes nothing.
    If that tool is deleted later and there is no file, the original serves until the tool is back.

    Raises:
        UnknownNamespaceError: no tool serves the namespace.
        InvalidChangeError: its file is no safe path, or its words are too long.
        RefusedError: it is not above the original's version, or has neither a file nor a registered
            tool.
    """
    context, workspace = space
    _check_promotion(promotion)
    promotion = shown_promotion(promotion, context.redactor)
    async with context.changing:
        registry = await context.memory.read_registry(workspace)
        _check_served(registry, namespace)
        stored = registry.promotions.get(namespace)
        if stored is None or not _is_same(promotion, stored.promotion):
            [stored] = await _prepare_promotions(space, registry, {namespace: promotion})
            await _append_events(space, [_make_event(context, stored, "promoted")])
            registry = await context.memory.read_registry(workspace)
    return await _read_status(context, registry, stored)


@router.get(_PATH, summary="What is promoted in a namespace, and how it fares")
async def read_promotion(space: Read, namespace: Namespace) -> m.PromotionStatus:
    """Return the promotion of a namespace, and how it performs.

    `failsMore` is true if the evolved version does worse than the original; nothing is undone.

    Raises:
        NotPromotedError: nothing is promoted in the namespace.
    """
    context, workspace = space
    registry = await context.memory.read_registry(workspace)
    return await _read_status(context, registry, _find_held(registry, namespace))


@router.delete(
    _PATH, summary="Let the original serve again", status_code=204, response_class=Response
)
async def remove_promotion(space: Admin, namespace: Namespace) -> None:
    """Let the original serve again; the history stays.

    Raises:
        NotPromotedError: nothing is promoted in the namespace.
    """
    context, workspace = space
    async with context.changing:
        held = _find_held(await context.memory.read_registry(workspace), namespace)
        await _append_events(space, [_make_removal(context, held)])


@router.get("/promotions", summary="All promotions, as the file .tool_promotions.json")
async def export_promotions(space: Read) -> Response:
    """Return exactly the text of the file: by namespace, with keys in snake_case."""
    context, workspace = space
    held = (await context.memory.read_registry(workspace)).promotions
    text = render_promotions(
        {name: shown_promotion(held[name].promotion, context.redactor) for name in sorted(held)}
    )
    return Response(text, media_type="application/json")


def _parse_file(body: bytes) -> dict[str, m.Promotion]:
    try:
        return parse_promotions(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise MalformedJsonError("the body is not UTF-8; send JSON in UTF-8") from None
    except PromotionsFileError as error:
        is_json = not isinstance(error.__cause__, json.JSONDecodeError | RecursionError)
        status, code = (422, "invalid_request") if is_json else (400, "malformed_json")
        message = f"{error}; nothing was imported"
        raise ProblemError(status, code, message, details={"entry": error.entry}) from None


async def _read_file(request: Request) -> dict[str, m.Promotion]:
    return await parse_body(await read_body(request), _parse_file)


PromotionsBody = Annotated[dict[str, m.Promotion], Depends(_read_file)]
"""The file of a request's body, which FastAPI would read with keys in camelCase."""


@router.put("/promotions", summary="Replace all promotions by a file .tool_promotions.json")
async def import_promotions(space: Admin, promotions: PromotionsBody) -> m.PromotionsReceipt:
    """Replace all promotions, all or none; a fault is named with its line and entry.

    A promotion that the file leaves out ends; the histories have every change.

    Raises:
        InvalidChangeError: an entry's file is no safe path, or its words are too long.
        RefusedError: an entry is not above the original's version, or has neither file nor tool.
    """
    context, workspace = space
    for name, promotion in promotions.items():
        _check_promotion(promotion, _name_entry(name))
    clean = {name: shown_promotion(each, context.redactor) for name, each in promotions.items()}
    async with context.changing:
        registry = await context.memory.read_registry(workspace)
        held = registry.promotions
        same: list[str] = []
        new: dict[str, m.Promotion] = {}
        for name, promotion in clean.items():
            if name in held and _is_same(promotion, held[name].promotion):
                same.append(name)
            else:
                new[name] = promotion
        removed = sorted(held.keys() - clean.keys())
        prepared = await _prepare_promotions(space, registry, new, is_file=True)
        events = [_make_event(context, each, "imported") for each in prepared]
        events += [_make_removal(context, held[name]) for name in removed]
        await _append_events(space, events)
    return m.PromotionsReceipt(
        added=sorted(new.keys() - held.keys()),
        changed=sorted(new.keys() & held.keys()),
        removed=removed,
        unchanged=sorted(same),
        unknown_namespaces=sorted(name for name in clean if not registry.in_namespace(name)),
    )


async def _prepare_promotions(
    space: Space,
    registry: Registry,
    promotions: Mapping[str, m.Promotion],
    *,
    is_file: bool = False,
) -> list[StoredPromotion]:
    context, workspace = space
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
                f"{_name_entry(name) if is_file else ''}there is neither an evolvedFile nor a "
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


async def _read_status(
    context: Context, registry: Registry, stored: StoredPromotion
) -> m.PromotionStatus:
    pair = pair_of(registry, stored.namespace)
    statistics = await context.memory.read_statistics(pair.keys) if pair else {}
    status = status_of(stored, pair, statistics, now=context.clock())
    words = {"reason": status.reason, "mutation": status.mutation}
    return status.model_copy(
        update={name: context.redactor.text(text) for name, text in words.items()}
    )


async def _append_events(space: Space, events: list[PromotionEvent]) -> None:
    context, workspace = space
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
        finally:  # a change that failed may have been stored
            context.memory.forget_state(workspace)
        context.indexer.wake_learner()
        for each in events:
            await context.note_action(workspace, f"promotion.{each.action}", each.namespace)


def _make_event(
    context: Context, stored: StoredPromotion, action: m.PromotionAction
) -> PromotionEvent:
    return PromotionEvent(stored.workspace, stored.namespace, context.clock(), action, stored)


def _make_removal(context: Context, held: StoredPromotion) -> PromotionEvent:
    return replace(_make_event(context, held, "removed"), promoted=None)


def _check_promotion(promotion: m.Promotion, place: str = "") -> None:
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


def _find_held(registry: Registry, namespace: str) -> StoredPromotion:
    if (stored := registry.promotions.get(namespace)) is None:
        _check_served(registry, namespace)
        raise NotPromotedError(f"nothing is promoted in {namespace[:80]!r}; the original serves it")
    return stored


def _is_same(new: m.Promotion, held: m.Promotion) -> bool:
    """Return whether a promotion states what holds already.

    A file has whole seconds, and a promotion without a time fits any time.
    """
    if new.promoted_at is None:
        return new.model_copy(update={"promoted_at": held.promoted_at}) == held
    return _cut_to_seconds(new) == _cut_to_seconds(held)


def _name_entry(entry: str) -> str:
    return f"entry {entry[:80]!r}: "


def _cut_to_seconds(promotion: m.Promotion) -> m.Promotion:
    at = promotion.promoted_at
    return promotion.model_copy(update={"promoted_at": at and at.replace(microsecond=0)})
