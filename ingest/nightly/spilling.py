"""Records sorted by tool without holding them all: spilled to files without names, by hash.

The files belong to no folder, so nothing of what agents sent is left behind, however this ends.
"""

import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Self

from mongo.records import ToolKey

_FILES = 64
"""Of 10 million failures of 1 kB each, 160 MB are in memory at a time."""


class SpilledByTool:
    """Takes (tool, line) pairs in any order and gives them back tool by tool; a context manager."""

    def __init__(self) -> None:
        self._resources = ExitStack()
        self._files: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        for _ in range(_FILES):
            self._files.append(self._resources.enter_context(tempfile.TemporaryFile()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def put(self, tool: ToolKey, line: bytes) -> None:
        """Keep a line of a tool; JSON has no line ends.

        Raises:
            OSError: no space left for it.
        """
        key = f"{tool.server_name or ''}\x1f{tool.tool_name}".encode()
        self._files[zlib.crc32(key) % _FILES].write(key.hex().encode() + b" " + line + b"\n")

    def tools(self, workspace: str) -> Iterator[tuple[ToolKey, list[bytes]]]:
        """Each tool with its lines in the order in which they came; only those of a file at once.

        Raises:
            OSError: they cannot be read back.
        """
        for file in self._files:
            file.flush()
            file.seek(0)
            lines: dict[str, list[bytes]] = defaultdict(list)
            for entry in file:
                key, _, line = entry.rstrip(b"\n").partition(b" ")
                lines[key.decode()].append(line)
            for tool in sorted(lines):
                server_name, _, tool_name = bytes.fromhex(tool).decode().partition("\x1f")
                yield ToolKey(workspace, server_name or None, tool_name), lines[tool]
