"""The server `files`: reading, listing, searching and writing the files of a project."""

from random import Random

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import Pydantic
from service.demo.history.drift import Drift, Weather
from service.demo.history.faults import ToolFault
from service.demo.history.schemas import choice, flag, schema, text, texts, whole
from service.demo.history.slips import (
    against_a_rule,
    as_list,
    as_one,
    as_text,
    beyond,
    called,
    invented,
    left_out,
    mistaken,
    renamed,
)
from service.demo.history.tools import DELETES, READS, WRITES, Moment, SimTool, Wish

_FOLDERS = ("src", "docs", "tests", "config")
_FILES = ("main.py", "README.md", "settings.toml", "billing.py", "login.py", "report.py")
_MODES = {"create": ("new", "w"), "append": ("a", "add"), "overwrite": ("replace", "rewrite")}


def _path(dice: Random) -> str:
    return f"{dice.choice(_FOLDERS)}/{dice.choice(_FILES)}"


def _inside(path: str) -> None:
    if path.startswith("/"):
        raise ToolFault(
            "hidden_rule", f"path {path!r} is absolute; paths are relative to the project",
            type="ValueError",
        )  # fmt: skip
    if path.split("/", maxsplit=1)[0] not in _FOLDERS:
        raise ToolFault(
            "not_found", f"[Errno 2] No such file or directory: {path!r}",
            type="FileNotFoundError", code="ENOENT",
        )  # fmt: skip


def _absolute(path: str, dice: Random) -> str:
    return f"/{path}" if dice.random() < 0.5 else f"/home/project/{path}"


def _elsewhere(path: str, dice: Random) -> str:
    return dice.choice((path.replace("src/", "lib/"), f"app/{path}", path.replace("/", "_")))


def _read(call: JsonObject, moment: Moment) -> JsonValue:
    _inside(str(call["path"]))
    return {"lines": min(int(str(call["limit"])), 20 + int(moment.dice.random() * 900))}


def _wish_read(dice: Random) -> Wish:
    path = _path(dice)
    parameters: JsonObject = {"path": path}
    if dice.random() < 0.4:
        parameters["limit"] = dice.choice((100, 500))
    return Wish(parameters, f"Read {path.split('/')[1]}")


def _list(call: JsonObject, moment: Moment) -> JsonValue:
    _inside(str(call["folder"]))
    return {"entries": 2 + int(moment.dice.random() * 40)}


def _wish_list(dice: Random) -> Wish:
    folder = dice.choice(_FOLDERS)
    return Wish({"folder": folder, "depth": dice.choice((1, 2))}, f"See what is in {folder}")


def _search(call: JsonObject, moment: Moment) -> JsonValue:
    pattern = str(call["pattern"])
    if pattern.count("(") != pattern.count(")"):
        raise ToolFault(
            "hidden_rule", f"regex parse error: {pattern}: unclosed group", type="RegexError"
        )
    return {"hits": int(moment.dice.random() * 60)}


def _wish_search(dice: Random) -> Wish:
    word = dice.choice(("def retry", "TODO", "timeout", "class Invoice", "import json"))
    parameters: JsonObject = {"pattern": word, "globs": ["*.py"], "max_hits": dice.choice((20, 50))}
    return Wish(parameters, f"Find where {word!r} occurs")


def _write(call: JsonObject, moment: Moment) -> JsonValue:
    _inside(str(call["path"]))
    if not moment.may_write and str(call["path"]).startswith("config/"):
        raise ToolFault(
            "permission", f"[Errno 13] Permission denied: {call['path']!r}",
            type="PermissionError", code="EACCES",
        )  # fmt: skip
    if call["mode"] == "create" and moment.dice.random() < 0.12:
        raise ToolFault(
            "conflict", f"[Errno 17] File exists: {call['path']!r}", type="FileExistsError",
            code="EEXIST",
        )  # fmt: skip
    return {"bytes": len(str(call["content"]))}


def _wish_write(dice: Random) -> Wish:
    path = _path(dice)
    mode = dice.choice(("create", "append", "overwrite", "overwrite"))
    parameters: JsonObject = {"path": path, "content": "# changed\n", "mode": mode}
    return Wish(parameters, f"Write the change to {path.split('/')[1]}")


def _delete(call: JsonObject, moment: Moment) -> JsonValue:
    del moment
    _inside(str(call["path"]))
    if not call["confirm"]:
        raise ToolFault("hidden_rule", "confirm must be true to delete a file", type="ValueError")
    return {"deleted": call["path"]}


def _wish_delete(dice: Random) -> Wish:
    path = _path(dice)
    return Wish({"path": path, "confirm": True}, f"Remove {path.split('/')[1]}")


TOOLS = (
    SimTool(
        server="files", name="read_file", run=_read, wish=_wish_read, dialect=Pydantic(),
        input_schema=schema("path", path=text(), limit=whole(1, 2000, default=2000)),
        slips=(
            against_a_rule("path", _absolute, weight=2),
            mistaken("path", _elsewhere),
            renamed("path", "file", "file_path", "filename", weight=2),
            beyond("limit", 2000, 5000, 10000),
            as_list("path", 0.5),
        ),
        description="Read the lines of a file.", annotations=READS, latency_ms=12, popularity=2.4,
    ),
    SimTool(
        server="files", name="list_folder", run=_list, wish=_wish_list, dialect=Pydantic(),
        input_schema=schema("folder", folder=text(), depth=whole(1, 3, default=1)),
        slips=(
            renamed("folder", "path", "directory", weight=2),
            beyond("depth", 3, 5, 10),
            against_a_rule("folder", _absolute),
            invented("recursive", True),  # noqa: FBT003  # a value, not an option
        ),
        description="What is in a folder.", annotations=READS, latency_ms=9, popularity=1.5,
    ),
    SimTool(
        server="files", name="search_files", run=_search, wish=_wish_search, dialect=Pydantic(),
        input_schema=schema(
            "pattern", pattern=text("a regular expression"), globs=texts(),
            max_hits=whole(1, 100, default=50), ignore_case=flag(default=False),
        ),
        slips=(
            as_one("globs", weight=1.5),
            renamed("pattern", "query", "regex", weight=1.5),
            against_a_rule("pattern", lambda pattern, _: f"{pattern}("),
            beyond("max_hits", 100, 500, 1000),
            as_text("max_hits"),
        ),
        description="Find lines by a regular expression.", annotations=READS, latency_ms=130,
        popularity=1.5, drift=(Drift(16, 22, None, Weather(slowness=4.0)),),
    ),
    SimTool(
        server="files", name="write_file", run=_write, wish=_wish_write, dialect=Pydantic(),
        input_schema=schema(
            "path", "content", "mode", path=text(), content=text(), mode=choice(*sorted(_MODES))
        ),
        slips=(
            called("mode", _MODES, weight=2),
            left_out("mode"),
            renamed("content", "text", "data", weight=1.5),
            against_a_rule("path", _absolute),
        ),
        description="Write a file.", annotations=WRITES, latency_ms=18, popularity=1.1,
    ),
    SimTool(
        server="files", name="delete_file", run=_delete, wish=_wish_delete, dialect=Pydantic(),
        input_schema=schema("path", path=text(), confirm=flag(default=False)),
        slips=(left_out("confirm", 2), as_text("confirm"), renamed("path", "file")),
        description="Delete a file for good.", annotations=DELETES, latency_ms=10,
        popularity=0.35,
    ),
)  # fmt: skip
