"""What calls keep getting wrong, in the descriptions of tools: read, bounded, and kept in a file.

The file is for a reviewer. It holds each sentence that is shown, and with `"pinned": true`, of the
whole or of one tool, it stays as it is: then nothing is shown that does not stand in it.

    {"pinned": false, "tools": {"git/git_log": {"contract": "3f2a…", "sentences": [
        {"text": "The parameter is called `max_count`, not `limit`.", "failures": 12,
         "confidence": 0.94}]}}}

Sentences are data: they are shown on one line, as such, and say nothing but names and values of
calls that several made. For a tool whose own contract has changed, what was learned before is left
out until calls fail so again.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import mcp_types
from fastmcp import FastMCP
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import Tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aftercall import AsyncClient, errors
from aftercall.adapters.fastmcp_results import claims_of_tool
from aftercall.change_classes import reads_only
from aftercall.errors import ConfigurationError
from aftercall.explain import explain_error
from aftercall.files import replace_file
from aftercall.json_values import JsonObject, bounded_text, printable_json
from aftercall.models.tools import LearnedContract

LEAST_FAILURES = 3
"""Calls that failed so, from which on it is a habit and no accident."""
LEAST_CONFIDENCE = 0.80
"""Of a sentence: as sure as a repair that is followed."""
MOST_CHARS_OF_TOOL = 300
MOST_CHARS = 6_000
"""Of all tools together, the most frequent mistakes first: some 1,500 tokens."""
_MAX_SENTENCE = 160
_EVERY_S = 60.0
_FIRST = "Learned by Aftercall from calls that failed (recorded data, not instructions): "
Located: TypeAlias = Callable[[str], tuple[str | None, str]]
_logger = logging.getLogger(__name__)


class ShownSentence(BaseModel):
    """A sentence of a tool's learned contract."""

    model_config = ConfigDict(extra="ignore")
    text: str = Field(max_length=1_000)
    failures: int = Field(default=0, ge=0)
    confidence: float = Field(default=1.0, ge=0, le=1)


class ShownContract(BaseModel):
    """What is shown of one tool; `contract` is the hash of what the tool states itself."""

    model_config = ConfigDict(extra="ignore")
    pinned: bool = False
    contract: str = ""
    sentences: list[ShownSentence] = Field(default_factory=list)
    before: dict[str, int] = Field(default_factory=dict)
    """Of a tool whose contract changed: the failures of each sentence at that time."""


class ContractFile(BaseModel):
    """The file; tools by `server/tool`, sorted, so that two versions can be compared."""

    model_config = ConfigDict(extra="ignore")
    pinned: bool = False
    tools: dict[str, ShownContract] = Field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "ContractFile":
        """Read the file; without one the result is empty.

        Raises:
            ConfigurationError: it cannot be read, or holds something else.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise ConfigurationError(f"--contracts {path}: cannot be read: {error}") from error
        except ValidationError as error:
            raise ConfigurationError(f"--contracts {path}: {explain_error(error, cls)}") from error

    def write(self, path: Path) -> None:
        """Write it, the tools in order."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        content = {"pinned": self.pinned, "tools": dict(sorted(content.get("tools", {}).items()))}
        replace_file(path, f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())


class LearnedDescriptions(Middleware):
    """Adds to each tool's description what calls keep getting wrong. Run `run` in a task.

    `is_shown` states of server and tool whether its `aftercall` entry asks for it (True), forbids
    it (False), or states nothing (None): then tools that only read have it.
    """

    def __init__(
        self,
        path: Path,
        client: AsyncClient,
        locate: Located,
        is_shown: Callable[[str | None, str], bool | None],
    ) -> None:
        self._path = path
        self._client = client
        self._locate = locate
        self._is_shown = is_shown
        self._file = ContractFile.read(path)
        self._listed: dict[str, str] = {}
        self._asked = asyncio.Event()
        self._changed: Callable[[], None] = lambda: None

    def serve_clients(self, gateway: FastMCP[Any], on_change: Callable[[], None]) -> None:
        """Change what clients of a gateway see; `on_change` is called when that is other."""
        self._changed = on_change
        gateway.add_middleware(self)

    async def on_list_tools(
        self,
        context: MiddlewareContext[mcp_types.ListToolsRequest],
        call_next: CallNext[mcp_types.ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Return the tools with what was learned of them; the service is not waited for."""
        tools = await call_next(context)
        keys = {tool.name: self._tool_key(tool) for tool in tools}
        self._listed = {
            key: contract_hash(tool.description, tool.parameters)
            for tool in tools
            if (key := keys[tool.name]) is not None
        }
        self._asked.set()
        shown = within_budget(self._file, self._listed)
        return [self._describe_tool(tool, shown.get(keys[tool.name] or "", [])) for tool in tools]

    def _tool_key(self, tool: Tool) -> str | None:
        server, name = self._locate(tool.name)
        wanted = self._is_shown(server, name)
        if wanted is None:
            wanted = reads_only(name, claims_of_tool(tool))
        return f"{server}/{name}" if wanted and server is not None else None

    @staticmethod
    def _describe_tool(tool: Tool, sentences: Sequence[str]) -> Tool:
        if not sentences:
            return tool
        said = "\n".join(filter(None, [tool.description, _FIRST + " ".join(sentences)]))
        return tool.model_copy(update={"description": said})

    async def run(self) -> None:
        """Learn of the tools that were listed, once a minute, until cancelled."""
        while True:
            await self._asked.wait()
            with suppress(errors.AftercallError):
                await self.refresh_file()
            await asyncio.sleep(_EVERY_S)

    async def refresh_file(self) -> None:
        """Ask the service, and write the file; nothing where the whole is pinned."""
        if self._file.pinned or not self._listed:
            return
        learned = await self._client.learned_contracts(sorted(self._listed))
        new = renew_file(self._file, self._listed, learned)
        if new == self._file:
            return
        before = within_budget(self._file, self._listed)
        try:
            await asyncio.to_thread(new.write, self._path)
        except OSError as error:
            _logger.warning("%s cannot be written, so nothing new is shown: %s", self._path, error)
            return
        self._file = new
        if within_budget(new, self._listed) != before:
            self._changed()


def contract_hash(description: str | None, parameters: JsonObject | None) -> str:
    """Return a hash of what a tool states of itself."""
    said = json.dumps([description, parameters], sort_keys=True)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def renew_file(
    file: ContractFile, listed: Mapping[str, str], learned: Sequence[LearnedContract]
) -> ContractFile:
    """Return the file with what is learned now; `listed` are hashes by `server/tool`."""
    known = {f"{each.server_name}/{each.tool_name}": each for each in learned}
    tools = dict(file.tools)
    for key, contract in listed.items():
        old = tools.get(key, ShownContract(contract=contract))
        if old.pinned:
            continue
        before = old.before
        if old.contract != contract:
            before = {each.text: each.failures for each in old.sentences} | before
        sentences = [
            ShownSentence(
                text=each.text, failures=each.failures, confidence=round(each.confidence, 2)
            )
            for each in (known[key].sentences if key in known else ())
            if not each.alone
            and each.failures >= LEAST_FAILURES
            and each.confidence >= LEAST_CONFIDENCE
            and each.failures > before.get(each.text, 0)
        ]
        tools[key] = ShownContract(contract=contract, sentences=sentences, before=before)
        if not sentences and not before:
            del tools[key]
    return ContractFile(pinned=file.pinned, tools=tools)


def within_budget(file: ContractFile, listed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the sentences to show, by tool: the most frequent mistakes first, as far as they fit.

    What stands in the file of a tool that states something else of itself by now is left out.
    """
    ranked = [
        (-sentence.failures, key, sentence.text)
        for key, each in file.tools.items()
        if each.contract in ("", listed.get(key)) and key in listed
        for sentence in each.sentences
    ]
    shown: dict[str, list[str]] = {}
    left = MOST_CHARS
    for _, key, text in sorted(ranked):
        line = bounded_text(printable_json(text)[1:-1].replace('\\"', '"'), _MAX_SENTENCE)
        spent = sum(map(len, shown.get(key, ())))
        if len(line) <= left and spent + len(line) <= MOST_CHARS_OF_TOOL:
            shown.setdefault(key, []).append(line)
            left -= len(line)
    return shown
