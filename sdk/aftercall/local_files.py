"""Files that data names: found below a folder of this machine, or refused.

A path that comes from a registry or a file others may write is data. It may name a file below a
folder that the caller chose, and nothing else, also when a symbolic link leads somewhere else.
"""

import unicodedata
from pathlib import Path, PureWindowsPath


class UnsafePathError(ValueError):
    """The path is not one below the folder; the message says why, and what to write."""


class MissingFileError(ValueError):
    """There is no such file below the folder."""


def check_relative_path(text: str) -> str:
    """`text` itself, when it can only name something below the folder it is read in.

    Forward slashes separate its parts on every system.

    Raises:
        UnsafePathError: it is empty or absolute, leaves the folder by `..`, or holds a backslash,
            a drive or a control character.
    """
    shown = repr(text[:200])
    if not text.strip() or text.strip("./") == "":
        raise UnsafePathError(f"{shown} names no file; write it like tools/translator_v1_1.py")
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        raise UnsafePathError(f"the path {shown} holds a control character")
    if text.startswith("/") or PureWindowsPath(text).drive:
        raise UnsafePathError(f"the path {shown} is absolute; write it relative to its folder")
    if "\\" in text:
        raise UnsafePathError(f"the path {shown} holds a backslash; separate its parts by /")
    if ".." in text.split("/"):
        raise UnsafePathError(f"the path {shown} holds `..`; it must stay below the folder")
    return text


def resolve_path(root: Path, path: Path) -> Path:
    """`path` with every symbolic link followed, when it lies below `root`; it need not exist.

    Raises:
        UnsafePathError: it lies outside `root`, or cannot be followed.
    """
    try:
        folder, target = root.resolve(), path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links
        raise UnsafePathError(f"{str(path)[:300]!r} cannot be followed: {error}") from error
    if not target.is_relative_to(folder):
        raise UnsafePathError(f"{str(path)[:300]!r} lies outside {str(root)!r}")
    return target


def resolve_file(root: Path, relative: str) -> Path:
    """The regular file that `relative` names below `root`, with every symbolic link followed.

    Raises:
        UnsafePathError: as `check_relative_path`, or when links lead out of `root`.
        MissingFileError: there is no such file, or it is no regular file.
    """
    path = root / check_relative_path(relative)
    file = resolve_path(root, path)
    try:
        is_file = file.is_file()
    except OSError as error:
        raise MissingFileError(f"{str(path)[:300]!r} cannot be looked at: {error}") from error
    if not is_file:
        raise MissingFileError(f"there is no file {str(path)[:300]!r}")
    return file
