"""A tool as it is now: its script, and the source of the version in force."""

from dataclasses import dataclass
from pathlib import Path

from aftercall.evolution.acceptance import PYTHON, language_of
from aftercall.evolution.checks import Checks
from aftercall.evolution.versioned_files import (
    ScriptError,
    read_source,
    resolve_script,
    version_in,
    versioned_name,
)
from aftercall.json_values import JsonObject
from aftercall.local_files import MissingFileError, UnsafePathError, resolve_file
from aftercall.models import Promotion
from aftercall.promotions_file import read_promotions
from aftercall.versions import parse_version


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvingTool:
    """A tool that is a script on this machine.

    Args:
        tool_id: its id; only data, never a part of a path.
        namespace: the capability that the new version is promoted in.
        script: its original script, below the folder of the promotions file.
        version: the original's version.
        description: what it does.
        input_schema: of its parameters.
        checks: what a new version must pass. Scripts that are no Python must have some, for nothing
            else would show that they are whole.
    """

    tool_id: str
    namespace: str
    script: Path
    version: str = "1.0.0"
    description: str = ""
    input_schema: JsonObject | None = None
    checks: Checks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What is to be evolved.

    Attributes:
        script: the original script, links followed.
        original: its source.
        source: that of the version in force, which the next one is made from.
        version: the version in force.
        notes: why the promoted version is not the one in `source`, if it is not.
    """

    script: Path
    original: str
    source: str
    version: str
    language: str
    notes: tuple[str, ...] = ()


def look_up(tool: EvolvingTool, promotions_file: Path) -> Present:
    """Read what is there.

    Raises:
        ConfigurationError: script, folder or promotions file cannot be used; the message says what
            to do.
    """
    root = promotions_file.parent
    script = resolve_script(tool.script, root)
    versioned_name(script.name, parse_version(tool.version))  # better now than after the work
    language = language_of(script.suffix)
    if language != PYTHON and tool.checks is None:
        raise ScriptError(
            f"{script.name} is no Python, so nothing would show that a new version is whole; "
            "configure checks for this tool"
        )
    original = read_source(script)
    source, version = original, tool.version
    notes: tuple[str, ...] = ()
    promotion = read_promotions(promotions_file, missing_ok=True).get(tool.namespace)
    if promotion is not None:
        try:
            source = read_source(_promoted_file(promotion, script, root))
            version = promotion.evolved_version
        except (ScriptError, MissingFileError, UnsafePathError) as error:
            notes = (
                f"the promoted version {promotion.evolved_version} is not evolved further, but "
                f"the original: {error}",
            )
    return Present(
        script=script,
        original=original,
        source=source,
        version=version,
        language=language,
        notes=notes,
    )


def _promoted_file(promotion: Promotion, script: Path, root: Path) -> Path:
    """The promoted file, when it is a version of this very script.

    The promotions file may come from elsewhere, and what it names goes to the evolver: it must not
    become a way to read other files.
    """
    if promotion.evolved_file is None:
        raise MissingFileError("it has no file here")
    file = resolve_file(root, promotion.evolved_file)
    if file.parent != script.parent or version_in(file.name, script.name) is None:
        raise UnsafePathError(f"{promotion.evolved_file!r} is no version of {script.name}")
    return file
