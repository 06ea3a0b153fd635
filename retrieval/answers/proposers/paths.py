"""Files and folders that the session knows: the near one next to a missing one, the folder before.

Only what the session's own calls and results name is proposed: a path that ends as the missing one
does, a name that a listing shows in its folder, and for a relative path the folder that the session
works in. A path may stand in a longer text, such as a command; the rest of the text stays.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os.path import commonpath
from typing import NamedTuple

from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.answers.proposers.case import Case, Option, prior_trials
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Replace
from retrieval.knowledge.session.session_calls import ARGUMENT
from retrieval.knowledge.values.likeness import nearest_value, words_of
from retrieval.knowledge.values.parameters import Path, leaves_like, value_at

_KINDS = frozenset(("not_found", "invalid", "not_allowed"))
_ABSOLUTE = "absolute path"
_LONGEST = 400
_LONGEST_VALUE = 1_600
_MOST = 3
_DRIVE = re.compile(r"[A-Za-z]:/")
_BLANK = re.compile(r"\s")
_MAY_BE_PATH = re.compile(r"[/\\]|\.\w")
"""What most words of a text lack; the others are looked at closer, which takes far longer."""
_TOKEN = re.compile(r"[^\s\"'`,;()\[\]{}<>|=]+")
_ROOTED = re.compile(r"/|~/|[A-Za-z]:[\\/]")
_FILE = re.compile(r"\A[\w@%+~ -][\w.@%+~ -]*\.[A-Za-z0-9]{1,8}\Z|\A\.[\w-]+\Z")
_LINE = re.compile(r":\d+(?::\d+)?(?::.*)?\Z")
"""The line behind a path that a search or a compiler prints."""
_MISSING = re.compile(
    r"no (?:such|files?|fixture)|not (?:be )?(?:found|exist)|n't exist|missing file"
    r"|(?:cannot|could not) (?:open|find|access|stat|read)",
    re.IGNORECASE,
)
_IS_URL = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]+://")
_OF_PATHS = frozenset(
    (
        "path",
        "file",
        "filename",
        "filepath",
        "folder",
        "directory",
        "dir",
        "cwd",
        "root",
        "workspace",
    )
)
_OF_FOLDERS = frozenset(
    ("cwd", "root", "directory", "dir", "workdir", "workspace", "base", "folder")
)
_SUFFIX = prior_trials("path.suffix")
"""A known path that ends as the missing one does."""
_LISTED = prior_trials("path.listed")
"""A name that a listing shows in the folder of the missing one."""
_NAME = prior_trials("path.name")
"""The only known file of the same name."""
_WITHIN = prior_trials("path.within")
"""A relative path behind the folder in which its first part is known to be."""
_FOLDER = prior_trials("path.folder")
"""The same behind the folder that all of the session's paths have in common."""


@dataclass(slots=True)
class KnownPaths:
    """The paths of a session: whole ones as they are written, and names by the listed folder."""

    whole: dict[str, None] = field(default_factory=dict)
    listed: dict[str, set[str]] = field(default_factory=dict)
    bases: list[str] = field(default_factory=list)
    """Absolute paths that its calls had as arguments, or that a result calls its folder."""

    def add(self, token: str, folders: Iterable[str]) -> None:
        """Note a word of a result, which listed these folders, if it is a path or a file's name."""
        path = _LINE.sub("", token.strip("\"'`,:*").removeprefix("file://")).removeprefix("./")
        if _is_path(path):
            self.whole[path] = None
        elif _FILE.match(path):
            for folder in folders:
                self.listed.setdefault(folder, set()).add(path)


def known_paths(case: Case) -> KnownPaths:
    """Return the paths that the successes of a session, and the call itself, name."""
    known = KnownPaths()
    for call in case.session():
        places = [(k, v) for k, held in call.values.items() for v in held if isinstance(v, str)]
        sent = [v for k, v in places if k.startswith(ARGUMENT) and len(v) <= _LONGEST]
        tokens = [token for text in sent for token in _TOKEN.findall(text)]
        paths = [text for text in dict.fromkeys((*sent, *tokens)) if _is_path(text)]
        known.whole.update(dict.fromkeys(text for text in paths if " " not in text))
        known.bases += [_forward_slashes(text) for text in sent if _ROOTED.match(text)]
        known.bases += [
            _forward_slashes(v)
            for k, v in places
            if not k.startswith(ARGUMENT)
            and _ROOTED.match(v)
            and not _OF_FOLDERS.isdisjoint(words_of(k.rpartition(".")[2]))
        ]
        folders = {
            _forward_slashes(text).rstrip("/") for text in paths if not _BLANK.search(text)
        } or {""}
        for token in call.words:
            if _MAY_BE_PATH.search(token):
                known.add(token, folders)
        for record in call.records:
            for value in record.fields.values():
                if isinstance(value, str) and not _BLANK.search(value):
                    known.add(value, folders)
    for place, value in leaves_like(case.whole or case.parameters, ()):
        is_folder = not _OF_FOLDERS.isdisjoint(words_of(str(place[-1])))
        if is_folder and isinstance(value, str) and _ROOTED.match(value):
            known.bases.append(_forward_slashes(value))
    return known


def _is_path(text: str) -> bool:
    plain = _forward_slashes(text)
    if _IS_URL.match(text):
        return False
    if ":" in plain[2:]:
        return False
    return "/" in plain.strip("/") or _ROOTED.match(plain) is not None


def _forward_slashes(text: str) -> str:
    return text.replace("\\", "/")


# ------------------------------------------------------------------ what is proposed
class _Wrong(NamedTuple):
    """A path that is wrong: its fault, its leaf, and its words there."""

    fault: int | None
    place: Path
    text: str
    is_relative: bool = False


def path_options(case: Case) -> Iterator[Option]:
    """Yield what the session knows for a path that is missing or has to be absolute."""
    wrong = list(_of_faults(case))
    if not wrong and not _says_missing(case):
        return
    known = known_paths(case)
    wrong = wrong or _find_unknown(case, known)
    for index, place, text, is_relative in wrong:
        value = value_at(case.parameters, place)
        if not isinstance(value, str):
            continue
        if is_redacted(value):
            continue
        if len(value) > _LONGEST_VALUE:
            continue
        for path, reason, trials in _find_meant(text, known, is_relative=is_relative)[:_MOST]:
            made = value.replace(text, path)
            if made != value:
                edit = _make_edit(case, place, value, made)
                covers = frozenset(() if index is None else (index,))
                yield Option((edit,), reason, trials, ("session",), covers=covers)


def _make_edit(case: Case, place: Path, value: JsonValue, made: str) -> Replace:
    if len(place) == 1:
        name = str(place[0])
        return Replace(name=name, before=case.parameters[name], value=made)
    return Replace(name="", before=value, value=made).at_path(place)


def _of_faults(case: Case) -> Iterator[_Wrong]:
    """Yield the wrong paths that the error's faults are about."""
    for index, fault in enumerate(case.faults):
        is_relative = fault.kind == "bad_format" and _wants_absolute(fault)
        if not (fault.kind in _KINDS or is_relative):
            continue
        said = fault.value_text or ""
        is_there = bool(fault.path) and value_at(case.parameters, fault.path) is not None
        found = []
        for place, value in leaves_like(case.parameters, ()):
            if not isinstance(value, str):
                continue
            if is_there and place != fault.path:
                continue
            is_whole = is_there or (is_relative and _is_relative(value, place))
            text = value if is_whole else ""
            if said and said in value:
                text = said
            if text and (is_relative or _is_path_like(text, place)):
                found.append(_Wrong(index, place, text, is_relative))
        if len(found) == 1 or not is_relative:
            yield from found


def _is_relative(text: str, place: Path) -> bool:
    plain = _forward_slashes(text)
    return not _ROOTED.match(plain) and not _BLANK.search(text) and _is_path_like(plain, place)


def _says_missing(case: Case) -> bool:
    if any(fault.kind in ("missing", "unexpected") for fault in case.faults):
        return False
    return case.reading.category == "not_found" or bool(_MISSING.search(case.reading.signature))


def _find_unknown(case: Case, known: KnownPaths) -> list[_Wrong]:
    """Return the one path of the call that the session does not know, and knows a near one of."""
    found = []
    at_fault = {fault.path for fault in case.faults if fault.path}
    leaves = [each for each in leaves_like(case.parameters, ()) if isinstance(each[1], str)]
    blamed = [place for place, _ in leaves if place in at_fault]
    for place, value in leaves:
        if len(str(value)) <= _LONGEST_VALUE and (not blamed or place in blamed):
            text = str(value)
            tokens = [token for token in _TOKEN.findall(text) if _is_path(token)]
            tokens = [token for token in tokens if token != text or _is_path_like(text, place)]
            tokens = tokens or ([text] if _is_of_paths(place) else [])
            found += [
                _Wrong(None, place, token)
                for token in tokens
                if token not in known.whole and _find_meant(token, known, is_relative=False)
            ]
    if len(found) == 1:
        return found
    return []


def _wants_absolute(fault: Fault) -> bool:
    return fault.expected_format == _ABSOLUTE


def _is_path_like(text: str, place: Path) -> bool:
    is_file = _ROOTED.match(text) or _FILE.match(_forward_slashes(text).rpartition("/")[2])
    return bool(is_file) or _is_of_paths(place)


def _is_of_paths(place: Path) -> bool:
    names = [step for step in place if isinstance(step, str)]
    return bool(names and not _OF_PATHS.isdisjoint(words_of(names[-1])))


Found = tuple[str, str, Trials]


def _find_meant(text: str, known: KnownPaths, *, is_relative: bool) -> list[Found]:
    """Return what a wrong path may mean, likeliest first, with its marks between folders."""
    plain = _forward_slashes(text)
    found = [] if is_relative else list(_find_near(plain, known))
    if not found:
        found = list(_find_absolute(plain, known))
    made = []
    for path, reason, trials in found:
        is_windows = "\\" in text or _DRIVE.match(path)
        made.append((path.replace("/", "\\") if is_windows else path, reason, trials))
    return made


def _find_near(missing: str, known: KnownPaths) -> Iterator[Found]:
    """Yield known paths that the missing one may mean, likeliest first."""
    folder, _, name = missing.rstrip("/").rpartition("/")
    end = "/" + missing.lstrip("./")
    ending = _only_path(each for each in known.whole if _forward_slashes(each).endswith(end))
    if ending is not None:
        yield ending, "a path of the session ends so", _SUFFIX
    beside = set(known.listed.get(folder, ())) | known.listed.get("", set())
    beside |= {_last_part(each) for each in known.whole if _parent_folder(each) == folder}
    like = nearest_value(name, sorted(beside - {name}))
    if like is not None and like[1] in ("same", "slip", "slips", "last"):
        path = f"{folder}/{like[0]}" if folder else like[0]
        yield path, "the session knows this name in the same folder", _LISTED
    same = [each for each in known.whole if _last_part(each).lower() == name.lower()]
    if not same:
        same = [f"{at}/{name}" for at, names in known.listed.items() if name in names and at]
    alike = _most_similar(missing, [each for each in same if _forward_slashes(each) != missing])
    if alike is not None and alike != ending:
        yield alike, "the only such name that the session knows is there", _NAME
    whole = nearest_value(missing, [each for each in known.whole if len(each) <= 200])
    if whole is not None and whole[1] in ("same", "slip", "slips"):
        yield whole[0], "a path of the session is nearly the same", _LISTED


def _find_absolute(relative: str, known: KnownPaths) -> Iterator[Found]:
    """Yield a relative path behind the folders that the session shows it to be in."""
    if _ROOTED.match(relative):
        return
    bare = relative.removeprefix("./").strip("/")
    is_here = bare in ("", ".")
    rooted = [each for each in map(_forward_slashes, known.whole) if _ROOTED.match(each)]
    first = bare.partition("/")[0]
    inside = f"/{first}/"
    roots: Counter[str] = Counter()
    if "/" in bare:
        roots.update(each.partition(inside)[0] for each in rooted if inside in each)
    most = roots.most_common(2)
    if most and (len(most) == 1 or most[0][1] > most[1][1]):
        yield f"{most[0][0]}/{bare}", f"the session has `{first}` in this folder", _WITHIN
        return
    if "/" not in bare and not is_here:
        listed = _only_path(at for at, names in known.listed.items() if bare in names and at)
        if listed is not None and _ROOTED.match(listed):
            yield f"{listed}/{bare}", "the session has seen it in this folder", _WITHIN
            return
    folders = [
        _parent_folder(each) if _FILE.match(each.rpartition("/")[2]) else each
        for each in known.bases or rooted
    ]
    starts = {each[:1] for each in folders}
    root = commonpath(folders) if len(starts) == 1 else ""
    if root.strip("/~"):
        seen = Trials(_FOLDER.right + min(len(known.bases), 8), _FOLDER.wrong, _FOLDER.kind)
        path = root if is_here else f"{root}/{bare}"
        yield path, "the session's calls are about this folder", seen


def _last_part(path: str) -> str:
    return _forward_slashes(path).rpartition("/")[2]


def _parent_folder(path: str) -> str:
    return _forward_slashes(path).rstrip("/").rpartition("/")[0]


def _only_path(paths: Iterable[str]) -> str | None:
    found = list(dict.fromkeys(paths))
    if len(found) == 1:
        return found[0]
    return None


def _most_similar(missing: str, paths: list[str]) -> str | None:
    """Return the path that shares most of its ending with another; None where two do."""
    parts = missing.split("/")[::-1]

    def count_shared(path: str) -> int:
        theirs = _forward_slashes(path).split("/")[::-1]
        same = [one.lower() == other.lower() for one, other in zip(parts, theirs, strict=False)]
        if False in same:
            return same.index(False)
        return len(same)

    ranked = sorted(dict.fromkeys(paths), key=lambda path: (-count_shared(path), path))
    if not ranked:
        return None
    first, *others = ranked
    if others and count_shared(first) == count_shared(others[0]):
        return None
    return first


# ------------------------------------------------------------------ what explains a value
def is_own_path(case: Case, former: JsonValue, value: str) -> bool:
    """Return whether all that is new in a text are paths of the session, or made of them."""
    if not isinstance(former, str):
        return False
    before = set(_TOKEN.findall(former))
    new = [token for token in _TOKEN.findall(value) if token not in before]
    if not new:
        return False
    if len(new) > _MOST:
        return False
    if not all(map(_MAY_BE_PATH.search, new)):
        return False
    known = known_paths(case)
    parents = set(map(_parent_folder, known.whole))
    parents.update(map(_parent_folder, known.listed))
    parents.update(known.listed)
    names = set(map(_last_part, known.whole))
    for listed in known.listed.values():
        names.update(listed)
    starts = list(map(_forward_slashes, known.whole))
    starts += known.bases
    starts += [f"{base}/" for base in known.bases]
    folders = parents.union(map(_parent_folder, before))

    def is_known(token: str) -> bool:
        folder, _, name = _forward_slashes(token).rpartition("/")
        if token in known.whole:
            return True
        if name in names and folder in folders:
            return True
        path = _forward_slashes(token)
        for each in map(_forward_slashes, before):
            relative = each.removeprefix("./")
            if not path.endswith(f"/{relative}"):
                continue
            folder = path[: -len(relative)]
            if any(start.startswith(folder) for start in starts):
                return True
        return False

    return all(map(is_known, new))
