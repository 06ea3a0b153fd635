"""What a promotion must be before it holds, and whether it says anything new. Pure."""

from datetime import datetime

from aftercall.models import Promotion
from aftercall.models.tools import parse_version
from aftercall.promotions_file import UnsafePathError, check_relative_path
from mongo.records import StoredPromotion
from retrieval.fitness.promotions import Pair
from retrieval.fitness.registry import Registry, UnknownNamespaceError
from service.changes import InvalidChangeError, NotPromotedError, RefusedError

MAX_WORDS = 10_000
"""Characters of a reason or a mutation, as many as of a scenario: each stands in every entry of the
history, and in the file."""


def check_promotion(promotion: Promotion, *, entry: str | None = None) -> None:
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


def check_there_is_one(promotion: Promotion, pair: Pair | None, *, entry: str | None) -> None:
    """That there is something to run under the promoted version.

    Args:
        promotion: as it was sent.
        pair: who would be promoted by it, and in whose place; None where nobody would.
        entry: as in `check_promotion`.

    Raises:
        RefusedError: it names no file, and no such version is registered.
    """
    if promotion.evolved_file is None and pair is None:
        raise RefusedError(
            f"{_place(entry)}there is neither an evolvedFile nor a registered tool of version "
            f"{promotion.evolved_version} with evolvedFrom; give the file, or put the tool first"
        )


def held_in(registry: Registry, namespace: str) -> StoredPromotion:
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


def dated(promotion: Promotion, now: datetime) -> Promotion:
    """With a time: its own, else now."""
    if promotion.promoted_at is not None:
        return promotion
    return promotion.model_copy(update={"promoted_at": now})


def says_the_same(new: Promotion, held: Promotion) -> bool:
    """Whether it says what holds already. A file has whole seconds; no time at all fits any."""
    if new.promoted_at is None:
        return new.model_copy(update={"promoted_at": held.promoted_at}) == held
    return _in_seconds(new) == _in_seconds(held)


def _place(entry: str | None) -> str:
    return "" if entry is None else f"entry {entry[:80]!r}: "


def _in_seconds(promotion: Promotion) -> Promotion:
    at = promotion.promoted_at
    return promotion.model_copy(update={"promoted_at": at and at.replace(microsecond=0)})
