"""Keeping a new version: its file, then its promotion, then its line in the changelog.

All that decides is done while the promotions file is locked, so of two evolutions at once neither
loses its entry, and of one tool they get versions one after the other. A process that is killed
leaves at worst a file that nothing points to, which the next version steps over, or a promotion
without its line in the changelog, which the next evolution adds.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from aftercall.errors import ConfigurationError
from aftercall.evolution.changelog import CHANGELOG_FILE, ChangelogEntry, append_entries
from aftercall.evolution.versioned_files import create_beside, versions_beside
from aftercall.local_files import MissingFileError, UnsafePathError, resolve_file
from aftercall.models import Promotion
from aftercall.promotions_file import read_promotions, update_promotions
from aftercall.versions import VersionNumber, parse_version, same_version

_MAX_NUMBER = 999_999_999
"""Largest number in a version, as `aftercall.versions` reads it."""

_MAX_TRIES = 100
"""Names that may be taken by others between looking and writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Accepted code and why it was made. Texts are redacted already."""

    tool_id: str
    namespace: str
    code: str
    original_version: str
    made_from: str
    """The version whose source it was made from."""
    reason: str
    mutation: str


@dataclass(slots=True)
class Committed:
    """A new version that is in force on this machine."""

    file: Path
    promotion: Promotion
    notes: list[str] = field(default_factory=list)


def commit(
    candidate: Candidate,
    *,
    script: Path,
    promotions_file: Path,
    known_versions: Sequence[VersionNumber],
) -> Committed:
    """Write the file, promote it, and tell it in the changelog.

    Args:
        candidate: what to keep.
        script: the tool's original script, as `resolve_script` gives it.
        promotions_file: where promotions are; `script` is below its folder.
        known_versions: versions of which there may be no file here, such as those of the history.

    Raises:
        ConfigurationError: the promotions file cannot be read or written, or the numbers of
            versions are used up; nothing has changed.
        OSError: the file cannot be written; nothing has changed.
    """
    root = promotions_file.parent.resolve(strict=True)
    promoted_at = datetime.now(UTC).replace(microsecond=0)  # as exact as the file
    done: list[Committed] = []
    before: list[Promotion] = []

    def change(promotions: dict[str, Promotion]) -> Mapping[str, Promotion]:
        present = promotions.get(candidate.namespace)
        before.extend([present] if present else [])
        versions = [*known_versions, *versions_beside(script)]
        versions += [parse_version(promotion.evolved_version) for promotion in before]
        version, file = _create(script, max(versions), candidate.code)
        promotion = Promotion(
            evolved_version=str(version),
            evolved_file=file.relative_to(root).as_posix(),
            original_version=candidate.original_version,
            reason=candidate.reason,
            mutation=candidate.mutation,
            promoted_at=promoted_at,
        )
        done.append(Committed(file, promotion))
        return {**promotions, candidate.namespace: promotion}

    try:
        update_promotions(promotions_file, change)
    except BaseException:
        if done:
            _remove(done[0], candidate.namespace, promotions_file)
        raise
    committed = done[0]
    if before and not same_version(before[0].evolved_version, candidate.made_from):
        committed.notes.append(
            f"it was made from version {candidate.made_from} and replaces "
            f"{before[0].evolved_version}, whose changes it may lack"
        )
    _tell(candidate, committed, before, promotions_file)
    return committed


def _create(script: Path, highest: VersionNumber, code: str) -> tuple[VersionNumber, Path]:
    version = highest
    for _ in range(_MAX_TRIES):
        version = version.next_minor
        if version.minor > _MAX_NUMBER:
            raise ConfigurationError(
                f"there is no version after {highest}; remove or rename the file that has it"
            )
        try:
            return version, create_beside(script, version, code)
        except FileExistsError:
            continue  # another program makes files of such names, or names differ by case only
    raise ConfigurationError(f"the next {_MAX_TRIES} versions after {highest} exist already")


def _remove(committed: Committed, namespace: str, promotions_file: Path) -> None:
    """Take the file away again, unless the promotions point to it in spite of the error."""
    try:
        present = read_promotions(promotions_file, missing_ok=True).get(namespace)
        if present is None or present.evolved_file != committed.promotion.evolved_file:
            committed.file.unlink(missing_ok=True)
    except (ConfigurationError, OSError):
        return  # a file that nothing points to does no harm


def _tell(
    candidate: Candidate, committed: Committed, before: list[Promotion], promotions_file: Path
) -> None:
    promotion = committed.promotion
    assert promotion.promoted_at is not None  # noqa: S101  # set in `commit`
    entries = [
        ChangelogEntry(
            at=promotion.promoted_at,
            namespace=candidate.namespace,
            tool_id=candidate.tool_id,
            version=promotion.evolved_version,
            made_from=candidate.made_from,
            file=promotion.evolved_file,
            sha256=hashlib.sha256(candidate.code.encode()).hexdigest(),
            reason=promotion.reason,
            mutation=promotion.mutation,
        )
    ]
    entries[:0] = [_found(candidate, earlier, promotions_file.parent) for earlier in before]
    try:
        append_entries(promotions_file.parent / CHANGELOG_FILE, entries)
    except (ConfigurationError, OSError) as error:
        committed.notes.append(
            f"the changelog could not be written ({error}); the next evolution of this namespace "
            "adds what is missing"
        )


def _found(candidate: Candidate, promotion: Promotion, root: Path) -> ChangelogEntry:
    """The entry of a promotion that should have one."""
    return ChangelogEntry(
        at=promotion.promoted_at or datetime.now(UTC).replace(microsecond=0),
        namespace=candidate.namespace,
        tool_id=candidate.tool_id,
        version=promotion.evolved_version,
        made_from=None,
        file=promotion.evolved_file,
        sha256=_hash_of(promotion, root),
        reason=promotion.reason,
        mutation=promotion.mutation,
        source="found",
    )


def _hash_of(promotion: Promotion, root: Path) -> str | None:
    if promotion.evolved_file is None:
        return None
    try:
        content = resolve_file(root, promotion.evolved_file).read_bytes()
    except (MissingFileError, UnsafePathError, OSError):
        return None
    return hashlib.sha256(content).hexdigest()
