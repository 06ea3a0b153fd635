"""Every write, sync and rename of a service's life, each as the moment of its death.

    python -m tests.proof.crash_points [--ways kill torn power pages]
                                       [--minutes 60] [--jobs 2] [--state FILE]
                                       [--write docs/figures/reliability.md]

One fixed scenario (`live`) records, learns, expires, rebuilds, forgets, exports, imports and spools
in a folder of its own. `crash_shim.c` counts the calls that change files below it and kills the
process at the n-th. What is left is opened again as a service opens it, learned to its end, and
compared with what was acknowledged before the death (`wrong_with`).

Points are of one class where the same lines of the product make the same call on the same file, at
the same step of the life, while the same files wait for their sync (`_Classes`). Each class is
tried at its first point, then each at its last, then at its middle, then all others. A run that has
a `--state` file goes on where the last one ended.
"""

import argparse
import asyncio
import ctypes
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from hashlib import sha256
from math import gcd
from pathlib import Path
from types import FrameType
from typing import Any

from tests.proof.crash_life import REBUILD, Said, Say, live, shipped_vectors, wrong_with

_ROOT = Path(__file__).parents[2]
_NUMBER = re.compile(r"[0-9a-f]{8}[0-9a-f-]*|\d+")
_INSIDE = re.compile(r"(?<=/vectors)/.*|(?<=/vectors-g#)/.*")
"""Of the vector index, which writes by itself: what matters is the call of ours that it is in."""
_OURS = re.compile(rf"{re.escape(str(_ROOT))}/(?!\.venv)")
SHIM = Path(__file__).with_name("crash_shim.c")
WAYS = {"kill": 0, "torn": 1, "power": 2, "pages": 3}


# Deaths.


_LISTENER = ctypes.CFUNCTYPE(
    None, ctypes.c_longlong, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t
)
_WRITE = "write"
"""What the class of a write begins with: only such a call can be torn."""


class _Classes:
    """What the points of a life have in common, but for the data that are written."""

    def __init__(self, folder: Path) -> None:
        self.step = ""
        """What was said last."""
        self._folder = str(folder.resolve())
        self._unsynced: set[str] = set()
        self._names: dict[int, str] = {}
        self._life: Coroutine[Any, Any, None] | None = None

    async def watched(self, life: Coroutine[Any, Any, None]) -> None:
        """Live, so that calls of other threads are known by what waits for them."""
        self._life = life
        await life

    def note(self, number: int, call: bytes, path: bytes, half: int) -> None:
        """A call, within the thread that makes it; `half` is of what it writes."""
        name = call.decode()
        file = _INSIDE.sub("", _NUMBER.sub("#", path.decode().removeprefix(self._folder)))
        what = (name, file, half.bit_length(), self.step, sorted(self._unsynced), self._lines())
        kind = _WRITE if "write" in name and half else name
        self._names[number] = f"{kind}-{sha256(repr(what).encode()).hexdigest()[:10]}"
        if "sync" in name:
            self._unsynced.discard(file)
        elif "write" in name or "truncate" in name:
            self._unsynced.add(file)

    def _lines(self) -> list[tuple[str, int]]:
        """Of ours that this thread is in, and of those that wait."""
        frame: FrameType | None = sys._getframe(2)
        found = []
        while frame is not None:
            found.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        waiting: Any = self._life
        while getattr(waiting, "cr_frame", None) is not None:
            found.append((waiting.cr_code, waiting.cr_frame.f_lineno))
            waiting = waiting.cr_await
        ours = [each for each in found if _OURS.match(each[0].co_filename)]
        return [(code.co_qualname, line - code.co_firstlineno) for code, line in ours]

    def of_all(self, count: int) -> list[str]:
        """Of all points in order; what no thread of Python calls is a class of its own."""
        return [self._names.get(number, "elsewhere") for number in range(1, count + 1)]


class Deaths:
    """Forks a life for each point, with the shim in it; what is left is looked at in another."""

    def __init__(self) -> None:
        self._shim = ctypes.CDLL(os.environ[LOADED])
        self._shim.crash_count.restype = ctypes.c_longlong
        with tempfile.TemporaryDirectory() as folder:
            text, status = forked(lambda say: say(asyncio.run(shipped_vectors(Path(folder)))))
        if status:
            raise SystemExit(text)
        self._shipped: int = json.loads(text)[0]

    def classes(self, way: str) -> list[str]:
        """Of each point of a life that nobody ends; raises where even that one is wrong."""
        names, wrong = self.one(0, WAYS[way])
        if wrong:
            raise SystemExit(f"without any death: {wrong}")
        return names

    def one(self, point: int, way: int) -> tuple[list[str], list[str]]:
        """Die at a point, or at none: the classes of all in that case, and what is wrong then."""
        memory = Path("/dev/shm")  # nothing of it outlives the process
        folder = Path(
            tempfile.mkdtemp(prefix="aftercall-crash-", dir=memory if memory.is_dir() else None)
        )
        try:
            text, status = forked(lambda say: self._lived(folder, point, way, say))
            if status not in (0, -signal.SIGKILL):
                return [], [f"ended with {status}: {text[-2000:]}"]
            said, _, classes = text.partition('["classes"')
            names = json.loads(f'[""{classes}')[1:] if classes else []
            found, status = forked(lambda say: self._looked(folder, said, say))
            if status != 0:
                return names, [f"cannot be opened: {found[-400:]}"]
            return names, [json.loads(line)[0] for line in found.split("\n")[:-1]]
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _lived(self, folder: Path, point: int, way: int, say: Say) -> None:
        classes = _Classes(folder)
        listener = _LISTENER(classes.note)  # it has to live as long as the shim may call it
        if point == 0:
            self._shim.crash_tell(listener)
        self._shim.crash_arm(str(folder).encode(), ctypes.c_longlong(point), way)

        def heard(*words: Any) -> None:
            classes.step = str(words[0])
            say(*words)

        asyncio.run(classes.watched(live(folder, heard)))
        if point == 0:
            say("classes", *classes.of_all(self._shim.crash_count()))

    def _looked(self, folder: Path, said: str, say: Say) -> None:
        for each in asyncio.run(wrong_with(folder, Said.read(said), self._shipped)):
            say(each)


def forked(work: Callable[[Say], None]) -> tuple[str, int]:
    """What a child said in lines of JSON, and how it ended: its code, or minus its signal."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1

        def say(*words: Any) -> None:
            os.write(writing, json.dumps(words).encode() + b"\n")

        try:
            work(say)
            status = 0
        except BaseException as error:  # noqa: BLE001  # the parent is told of any
            import traceback

            os.write(writing, "".join(traceback.format_exception(error)).encode()[-4000:])
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    return text, os.waitstatus_to_exitcode(status)


LOADED = "AFTERCALL_CRASH_SHIM"


def order(classes: Sequence[str]) -> dict[str, int]:
    """All points by a name that lasts: the first of each class first, then last and middle ones.

    What is taken from the front of each part is spread over the whole life.
    """
    members: dict[str, list[int]] = {}
    for point, name in enumerate(classes, 1):
        members.setdefault(name, []).append(point)
    parts: list[dict[str, int]] = [{}, {}, {}, {}]
    for name, points in members.items():
        first = dict.fromkeys((0, len(points) - 1, len(points) // 2))
        for place in dict.fromkeys((*first, *range(len(points)))):
            part = [*first].index(place) if place in first else 3
            parts[part][f"{name}.{place}"] = points[place]
    return {name: part[name] for part in parts for name in _spread(list(part))}


def _spread(names: Sequence[str]) -> list[str]:
    step = max(1, round(len(names) * 0.618034))
    while gcd(step, len(names)) > 1:
        step += 1
    return [names[step * each % len(names)] for each in range(len(names))]


def load_shim(folder: Path) -> dict[str, str]:
    """Compile it; the environment of a process that has it in it.

    Raises:
        FileNotFoundError: there is no C compiler.
    """
    library = folder / "crash_shim.so"
    words = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SHIM), "-ldl", "-lpthread"]
    subprocess.run(words, check=True)  # our own file
    others = {name: value for name, value in os.environ.items() if name != LOADED}
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    return {**others, **one, "LD_PRELOAD": str(library), LOADED: str(library)}


def work(ways: Sequence[str], jobs: int, until: int, minutes: float) -> None:
    """Try the points of ways, without those that stdin names; a line for each."""
    logging.disable()
    known, deaths, ends = set(json.load(sys.stdin)), Deaths(), time.monotonic() + 60 * minutes
    classes = deaths.classes(ways[-1])
    for way in ways:
        of_way = [each if way != "torn" or each.startswith(_WRITE) else "" for each in classes]
        points = {name: point for name, point in order(of_way).items() if name[0] != "."}
        _tell({"way": way, "points": [*points]})
        new = [name for name in points if name not in known][:until]
        children = []
        for job in range(jobs):
            if (child := os.fork()) == 0:
                for name in new[job::jobs]:
                    if time.monotonic() > ends:
                        break
                    wrong = deaths.one(points[name], WAYS[way])[1]
                    _tell({"way": way, "point": name, "wrong": wrong})
                os._exit(0)
            children.append(child)
        ends_of = [os.waitpid(child, 0)[1] for child in children]
        if any(ends_of):
            raise SystemExit("a job did not end well")


def _tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


Tried = tuple[list[str], dict[str, list[str]]]
"""All points in the order of trial, and what was wrong at each new one that was tried."""


def run(
    *ways: str,
    jobs: int = 2,
    known: Collection[str] = (),
    until: int = 1 << 30,
    minutes: float = 60.0,
) -> tuple[list[Tried], int]:
    """What was tried of each way, and a status.

    The status is 0 where the work came to its own end; what it tried before another one counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        environ = load_shim(Path(folder))
        environ["PYTHONPATH"] = os.pathsep.join(map(str, (_ROOT, _ROOT / "sdk")))
        words = [sys.executable, "-m", "tests.proof.crash_points", "--work", *ways]
        done = subprocess.run(  # ourselves
            [*words, *map(str, (jobs, until, minutes))], check=False,
            env=environ, cwd=_ROOT, text=True, input=json.dumps([*known]),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if not done.stdout.endswith("\n"):
            raise SystemExit(f"the work ended with {done.returncode}: {done.stdout[-2000:]}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        tried: dict[str, Tried] = {e["way"]: (e["points"], {}) for e in lines if "points" in e}
        for each in lines:
            if "point" in each:
                tried[each["way"]][1][each["point"]] = each["wrong"]
        return [*tried.values()], done.returncode


def told(way: str, known: dict[str, Any]) -> list[str]:
    """A row of the table: what a way came to."""
    tried, classes = set(known["tried"]), dict[str, list[str]]()
    for name in known["points"]:
        classes.setdefault(name.partition(".")[0], []).append(name)
    # The order names first, last and middle ones first of all.
    whole = sum(tried.issuperset(each[:3]) for each in classes.values())
    some = sum(not tried.isdisjoint(each) for each in classes.values())
    return [
        way, f"{len(known['points']):,}", f"{len(classes):,}", f"{some:,}", f"{whole:,}",
        f"{len(tried.intersection(known['points'])):,}", str(len(known["wrong"])),
        str(known["rebuilds"]), f"{known['s'] / 60:.0f} min",
    ]  # fmt: skip


def report(state: dict[str, Any]) -> str:
    """The table of `docs/figures/reliability.md`."""
    rows = ["| " + " | ".join(told(way, known)) + " |" for way, known in state.items()]
    return "\n".join([_REPORT, *rows, ""])


def written_into(file: Path, section: str) -> None:
    """Put a section into a file of figures, instead of the one of its heading."""
    heading = section.partition("\n")[0]
    if not file.exists():
        file.write_text(section, "utf-8")
        return
    parts = file.read_text("utf-8").split("\n## ")
    others = [each for each in parts if not f"## {each}".startswith(f"{heading}\n")]
    file.write_text("\n## ".join([*others, section.removeprefix("## ")]), "utf-8")


_REPORT = """## Dying at every point

`python -m tests.proof.crash_points`.

| death | points | classes | tried at a point | at first, middle and last | points tried | wrong | asked for a rebuild | took |
|---|---:|---:|---:|---:|---:|---:|---:|---:|"""  # noqa: E501  # a row of a table


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[*WAYS], help="how to die")
    parser.add_argument("--minutes", type=float, default=60.0, help="for each way (60)")
    parser.add_argument("--jobs", type=int, default=2, help="lives at a time (2)")
    parser.add_argument(
        "--until", type=int, default=1 << 30, help="so many points of a way at most"
    )
    parser.add_argument("--state", type=Path, help="go on where this file says, and keep it so")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the table, as Markdown")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        *ways, jobs, until, minutes = args.work
        work(ways, int(jobs), int(until), float(minutes))
        return
    state: dict[str, Any] = {}
    if args.state and args.state.exists():
        state = json.loads(args.state.read_text("utf-8"))
    for way in args.ways:
        known = state.setdefault(
            way, {"points": [], "tried": [], "rebuilds": 0, "s": 0, "wrong": {}}
        )
        began = time.monotonic()
        # What was wrong is tried again: it may be mended.
        known["tried"] = [each for each in known["tried"] if each not in known["wrong"]]
        [(points, found)], status = run(
            way, jobs=args.jobs, known=known["tried"], until=args.until, minutes=args.minutes
        )
        left = {*points}.difference(found)
        known["wrong"] = {each: bad for each, bad in known["wrong"].items() if each in left}
        for point, wrong in found.items():
            known["rebuilds"] += REBUILD in wrong
            if bad := [each for each in wrong if each != REBUILD]:
                known["wrong"][point] = bad
        known["points"], known["tried"] = points, known["tried"] + list(found)
        known["s"] = round(known["s"] + time.monotonic() - began)
        sys.stdout.write(f"{report({way: known})}\n")
        sys.stdout.writelines(
            f"  {point}: {'; '.join(bad)[:600]}\n" for point, bad in known["wrong"].items()
        )
        if args.state:
            args.state.parent.mkdir(parents=True, exist_ok=True)
            args.state.write_text(json.dumps(state, indent=1), "utf-8")
        if args.write:
            written_into(args.write, report(state))
        if status:
            raise SystemExit(f"the work ended with {status}; what it had tried is kept")
    if any(each["wrong"] for each in state.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
