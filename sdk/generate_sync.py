"""Writes the synchronous client, drivers and toolbox from the asynchronous ones: `make generate`.

`SOURCES` are rewritten word by word: an `await` goes, a name gets its synchronous twin. The toolbox
runs tools that are coroutines, so its methods are written again around an event loop of its own.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "aftercall"
GENERATED = PACKAGE / "_generated"

SOURCES = {
    "client/async_base.py": "base_client.py",
    "client/async_client.py": "client.py",
    "harmony/async_tool_calls.py": "harmony_tool_calls.py",
    "reflection/async_driver.py": "reflection_driver.py",
}

WORDS = {
    r"aftercall\.client\.async_base\b": "aftercall._generated.base_client",
    r"asyncio\.to_thread\(([\w.]+), ": r"\1(",
    r"\bawait ": "",
    r"\basync (def|for|with) ": r"\1 ",
    r"\bin each\((\w+)\)": r"in \1",
    r"\bAsyncIterable\[str\] \| ": "",
    r"\bAsync(?=[A-Z])": "",
    r"\bAwaitable\[(\w+)\]": r"\1",
    r"__a(enter|exit)__": r"__\1__",
    r"\baclose\b": "close",
    r"\basyncio\b": "time",
    r"\brun_async\b": "run",
    r"\bask\(": "ask_sync(",
    r"(?<=import )within\b|\bwithin(?=\()": "within_sync",
    r"\bcall_with_reflection\b": "call_with_reflection_sync",
    r"Talks to the service from time code; an async context manager\.": (
        "Talks to the service; a context manager. May be shared between threads."
    ),
    r"for time code": "for synchronous programs",
    r"any coroutine function": "any function",
    r"\n\n(The source of|This is the source of) .*?`make generate` writes\.": "",
    r"\nThis is the source of .*?`make generate` writes\.": "",
}

NOTE = "# Made by `make generate` from {source}; edit that.\n"

TOOLBOX = '''"""The toolbox for synchronous programs."""
{imports}
from aftercall.toolbox.async_toolbox import AsyncToolbox
from aftercall.background import BackgroundLoop


class Toolbox:
    """The methods of `AsyncToolbox`, without `await`; a context manager.

    It may be used from several threads, whose calls run side by side, and from tools that are plain
    functions; not from tools that are coroutines, as those run on its loop.

    Its `client`, an `AsyncClient` that nothing else uses, is closed with it.
    """

    def __init__(self) -> None:
        self._toolbox = AsyncToolbox()
        self._client = client
        self._loop = BackgroundLoop("aftercall-toolbox")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the calls that still run, close the client and the loop; twice does nothing.

        Raises:
            RuntimeError: from a tool's own coroutine, or in a thread that waits for a call.
        """
        self._loop.close(None if self._client is None else self._client.close)
'''


def rewrite_source(source: str) -> str:
    """Return the synchronous form of a module, before it is formatted."""
    text = (PACKAGE / source).read_text()
    for pattern, replacement in WORDS.items():
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    end = text.index('"""', 3) + 3
    return text[:end] + "\n\n" + NOTE.format(source=source) + text[end:]


def write_toolbox() -> str:
    """Return the synchronous toolbox: each method of the other one, run on a loop."""
    source = ast.parse((PACKAGE / "toolbox/async_toolbox.py").read_text())
    imports = [ast.unparse(n) for n in source.body if isinstance(n, ast.Import | ast.ImportFrom)]
    note = NOTE.format(source="toolbox/async_toolbox.py")
    made = ast.parse(TOOLBOX.format(imports="\n".join([*imports, "from typing import Self"])))
    for method in _class_in(source).body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            init = next(n for n in ast.walk(made) if getattr(n, "name", "") == "__init__")
            init.args, init.body[0].value = method.args, _make_call("AsyncToolbox", method.args)
        elif isinstance(method, ast.AsyncFunctionDef) and not method.name.startswith("_"):
            call = _make_call(f"self._toolbox.{method.name}", method.args)
            body = [method.body[0], ast.Return(ast.Call(ast.Name("self._loop.run"), [call], []))]
            plain = ast.FunctionDef(method.name, method.args, body, [], method.returns)
            _class_in(made).body.append(plain)
    return ast.unparse(ast.fix_missing_locations(made)).replace('"""\n', f'"""\n{note}', 1)


def _class_in(tree: ast.Module) -> ast.ClassDef:
    return next(node for node in tree.body if isinstance(node, ast.ClassDef))


def _make_call(name: str, arguments: ast.arguments) -> ast.Call:
    plain = [ast.Name(each.arg) for each in arguments.args if each.arg != "self"]
    named = [ast.keyword(each.arg, ast.Name(each.arg)) for each in arguments.kwonlyargs]
    return ast.Call(ast.Name(name), plain, named)


def format_text(text: str) -> str:
    """Return the text as ruff formats it, with the imports that are needed."""
    name = str(GENERATED / "made.py")
    for command in (["check", "--quiet", "--fix", "--select", "F401,F811,I"], ["format"]):
        done = subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=PACKAGE.parent.parent,
        )
        text = done.stdout
    return text


def generate_files() -> dict[Path, str]:
    """Return all files that are to be, with their text."""
    files = {GENERATED / to: format_text(rewrite_source(source)) for source, to in SOURCES.items()}
    return files | {GENERATED / "toolbox.py": format_text(write_toolbox())}


if __name__ == "__main__":
    for path, text in generate_files().items():
        path.write_text(text)
