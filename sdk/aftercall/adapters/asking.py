"""How adapters ask the service: with either client, and with what they know of the tool.

For adapters of frameworks that call tools both ways, with and without an event loop.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from aftercall.adapters.asking_threads import AskingThreads
from aftercall.errors import ConfigurationError
from aftercall.json_values import make_json_value
from aftercall.models.calls import Execution, ExecutionError, SuggestResponse, ToolAnnotations
from aftercall.reflection import AsyncSuggester, Suggester

AnySuggester: TypeAlias = Suggester | AsyncSuggester
"""A `Client` or an `AsyncClient`."""

_THREADS = AskingThreads()

_NO_LOOP = (
    "a tool is called without an event loop, and an AsyncClient cannot be asked then: "
    "give a Client, which serves both ways"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTool:
    """What an adapter knows of a tool; looked up only when a call of it has failed.

    Args:
        schema: the input schema as the framework has it. What it raises is taken for None.
        annotations: claims about the tool; None leaves it to those registered at the service.
        has_run: whether the failed attempt came so far that the tool's own code ran. Then nothing
            in the words of its error makes a retry safe.
    """

    schema: Callable[[], object] = lambda: None
    annotations: ToolAnnotations | None = None
    has_run: Callable[[], bool] = lambda: False

    def described(self, execution: Execution) -> Execution:
        """The question with the tool's live schema, and whether it ran."""
        error = execution.error
        if error is not None and self.has_run():
            ran = error.model_copy(update={"details": {**error.details, "ran": True}})
            execution = execution.model_copy(update={"error": ran})
        try:
            schema = make_json_value(self.schema())
        except Exception:  # noqa: BLE001  # a foreign schema may fail in any way; the question stands
            return execution
        if not isinstance(schema, dict):
            return execution
        return execution.model_copy(update={"input_schema": schema})


class AsyncAsking:
    """Asks from a coroutine; a `Client` is asked in a thread that nothing else waits for.

    Args:
        client: either client.
        tool: what is known of the tool.
    """

    def __init__(self, client: AnySuggester, tool: KnownTool) -> None:
        self._client = client
        self._tool = tool

    async def suggest(
        self,
        execution: Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        """As the client's, with schema and annotations of the tool."""
        question = self._tool.described(execution)
        claims = self._tool.annotations if annotations is None else annotations
        if is_async(self._client):
            client = cast("AsyncSuggester", self._client)
            return await client.suggest(question, limit=limit, annotations=claims)
        plain = cast("Suggester", self._client)
        return await _THREADS.run(lambda: plain.suggest(question, limit=limit, annotations=claims))


class Asking:
    """Asks from code without an event loop.

    Args:
        client: a `Client`.
        tool: what is known of the tool.

    Raises:
        ConfigurationError: the client is an `AsyncClient`.
    """

    def __init__(self, client: AnySuggester, tool: KnownTool) -> None:
        if is_async(client):
            raise ConfigurationError(_NO_LOOP)
        self._client = cast("Suggester", client)
        self._tool = tool

    def suggest(
        self,
        execution: Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        """As the client's, with schema and annotations of the tool."""
        claims = self._tool.annotations if annotations is None else annotations
        question = self._tool.described(execution)
        return self._client.suggest(question, limit=limit, annotations=claims)


def is_async(client: AnySuggester) -> bool:
    """Whether it is asked with `await`."""
    return inspect.iscoroutinefunction(client.suggest)


def claims_in(metadata: object) -> ToolAnnotations | None:
    """MCP's annotations among a tool's metadata (`readOnlyHint` ...); None when none is claimed."""
    if not isinstance(metadata, dict):
        return None
    try:
        claims = ToolAnnotations.model_validate(metadata)
    except ValueError:  # not booleans: safety hangs on them, so nothing is read into them
        return None
    return claims if claims.model_dump(exclude_none=True) else None


def told(error: ExecutionError, advice: str) -> str:
    """What a model reads of a failure: the tool's own error first, then the suggestions."""
    own = f"{error.type}: {error.message}" if error.message else error.type
    return with_advice(own, advice)


def with_advice(text: str, advice: str) -> str:
    """A text with the suggestions after it, if there are any."""
    return f"{text}\n\n{advice}" if advice else text
