"""The client for asyncio code, for calls and tools; `AsyncClient` adds what was learned.

The source of the synchronous client too, which `make generate` writes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import httpx2

from aftercall import models
from aftercall.client.transport import (
    QueryValue,
    Request,
    checked_base_url,
    client_headers,
    key_id,
    mapped_errors,
    model_reader,
    own_key,
    path_segment,
    query_string,
    read_answer,
    reads_nothing,
    record_request,
    request_headers,
    retry_wait_s,
)
from aftercall.errors import AftercallError, ServiceFailedError, ServiceUnreachableError
from aftercall.json_values import JsonObject
from aftercall.outcomes import error_of
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=models.WireModel)
_LARGE_BATCH = 20
"""Executions whose redaction may hold up an event loop: some 30 microseconds each."""


class AsyncBaseClient:
    """Sends requests, again where that can help, and has the methods for calls and tools."""

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_s: float = 10.0,
        connect_timeout_s: float = 2.0,
        retries: int = 2,
        redactor: Redactor | None = DEFAULT_REDACTOR,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._retries = retries
        self.redactor = redactor
        """What masks secrets."""
        self._url = checked_base_url(base_url)
        self.base_url = str(self._url)
        """Where the service is."""
        key = own_key(api_key)
        self.key_id = key_id(key)
        """Which key it sends, without the secret; empty for none."""
        self._http = httpx2.AsyncClient(
            base_url=self._url,
            timeout=httpx2.Timeout(timeout_s, connect=connect_timeout_s),
            headers=client_headers(headers, key),
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; closing twice does nothing."""
        await self._http.aclose()

    async def record(
        self, executions: models.Execution | Sequence[models.Execution]
    ) -> models.RecordReceipt:
        """Store executions, at most 1,000 and 8 MiB at once; durable when this returns.

        One that the service refuses is named in the receipt and holds up no other. To record from
        running calls use `Recorder`: it takes no time, and keeps what cannot be sent.
        """
        if isinstance(executions, models.Execution) or len(executions) <= _LARGE_BATCH:
            return await self.send(record_request(executions, self.redactor))
        return await self.send(await asyncio.to_thread(record_request, executions, self.redactor))

    async def get_execution(self, execution_id: str) -> models.Execution:
        """Return an execution as it is stored."""
        return await self._get_model(f"/executions/{path_segment(execution_id)}", models.Execution)

    async def status(self) -> models.Status:
        """Return what the service holds and how far it is with it."""
        return await self._get_model("/status", models.Status)

    async def suggest(
        self,
        execution: models.FailedCall | models.Execution | str,
        parameters: JsonObject | None = None,
        error: object = None,
        *,
        limit: int = 3,
        annotations: models.ToolAnnotations | None = None,
        **more: Any,
    ) -> models.SuggestResponse:
        """Ask what to do about a failed call; an empty list of suggestions is an honest answer.

        In short: `suggest("search", {"topK": 50}, error)`, by the tool's name. The error is what
        was raised, or a text, or an object; `more` are further fields of `FailedCall`
        (`server_name`, `agent`, `session_id`, `context`, `input_schema`). A success, or no error,
        is a `ValueError`.

        `limit` is 1 to 20. `annotations` are claims about the tool; None takes those it was
        registered with, `ToolAnnotations()` trusts none.
        """
        if isinstance(execution, str):
            if error is None:
                raise ValueError("say what the tool said: suggest(tool, parameters, error)")
            said = {"tool_name": execution, "parameters": parameters or {}, "agent": "unknown"}
            execution = models.FailedCall(**{**said, **more, "error": error_of(error)})
        if isinstance(execution, models.Execution):
            if execution.outcome != "failure":
                raise ValueError(
                    f"execution {execution.execution_id} is a success; only a failure can be asked "
                    "about"
                )
            execution = models.FailedCall.model_validate(dict(execution))
        clean = execution if self.redactor is None else self.redactor.call(execution)
        question = models.SuggestRequest(execution=clean, limit=limit, annotations=annotations)
        return await self._send_body("POST", "/suggest", question, models.SuggestResponse)

    async def check(
        self, call: models.Call, *, annotations: models.ToolAnnotations | None = None
    ) -> models.CheckResponse:
        """Ask about a call before it is made: by schema, profile and learned rules alone.

        `annotations` as in `suggest`. With `repair`, apply the `changes` to the call's own
        parameters: where the redactor masked a value, `corrected_parameters` has the mask.
        """
        clean = call if self.redactor is None else self.redactor.call(call)
        fields = {name: getattr(clean, name) for name in models.Call.model_fields}
        question = models.CheckRequest(call=models.Call(**fields), annotations=annotations)
        return await self._send_body("POST", "/check", question, models.CheckResponse)

    async def report_outcome(
        self, suggestion_id: str, *, outcome: models.Outcome, execution_id: str
    ) -> None:
        """Report what became of a suggestion; `execution_id` is the call that followed it."""
        report = models.OutcomeReport(outcome=outcome, execution_id=execution_id)
        path = f"/suggestions/{path_segment(suggestion_id)}/outcome"
        await self.send(Request("POST", path, reads_nothing, report.model_dump_json().encode()))

    async def similar(
        self,
        tool_name: str,
        *,
        server_name: str | None = None,
        context: str | None = None,
        parameters: JsonObject | None = None,
        outcome: models.Outcome = "success",
        agent: str | None = None,
        signature: str | None = None,
        limit: int = 5,
    ) -> models.SimilarResponse:
        """Recorded calls like this one, different ones, the likest first; `limit` is 1 to 50.

        Of one agent, or failures of one signature, where these are given.
        """
        question = models.SimilarRequest(
            tool_name=tool_name,
            server_name=server_name,
            context=context,
            parameters=parameters or {},
            outcome=outcome,
            agent=agent,
            signature=signature,
            limit=limit,
        )
        if self.redactor is not None:
            clean = self.redactor.parameters(tool_name, question.parameters)
            question = question.model_copy(update={"parameters": clean})
        return await self._send_body(
            "POST", "/similar", question, models.SimilarResponse, masked=("context",)
        )

    async def put_tool(self, tool_id: str, spec: models.ToolSpec) -> models.Tool:
        """Register a tool, or replace the one of this id."""
        clean = spec if self.redactor is None else self.redactor.tool(spec)
        return await self._send_body("PUT", f"/tools/{path_segment(tool_id)}", clean, models.Tool)

    async def put_tools(self, tools: Sequence[models.NamedTool]) -> models.ToolsReceipt:
        """Register tools or replace those of their ids, at most 1,000; others stay as they are."""
        clean = tools if self.redactor is None else [self.redactor.tool(each) for each in tools]
        content = b"[" + b",".join(each.model_dump_json().encode() for each in clean) + b"]"
        return await self.send(Request("PUT", "/tools", model_reader(models.ToolsReceipt), content))

    async def get_tool(self, tool_id: str, *, use_evolved: bool = False) -> models.Tool:
        """Return a registered tool; with `use_evolved` the version promoted for it."""
        return await self._get_model(
            f"/tools/{path_segment(tool_id)}", models.Tool, use_evolved=use_evolved or None
        )

    async def list_tools(self) -> list[models.Tool]:
        """Return all registered tools."""
        return (await self._get_model("/tools", models.ToolList)).tools

    async def delete_tool(self, tool_id: str) -> None:
        """Forget a tool's registration; what was learned about its calls stays."""
        await self.send(Request("DELETE", f"/tools/{path_segment(tool_id)}", reads_nothing))

    async def healthy(self) -> bool:
        """Return whether the service runs; False also when there is no answer."""
        return await self._probe_path("/healthz")

    async def ready(self) -> bool:
        """Return whether the service answers questions now; False also when there is no answer."""
        return await self._probe_path("/readyz")

    async def send(self, request: Request[T]) -> T:
        """Send a request of `aftercall.client.transport`, again where that can help."""
        attempt = 0
        while True:
            attempt += 1
            try:
                with mapped_errors(self._url):
                    response = await self._http.request(
                        request.method,
                        request.path,
                        content=request.body,
                        headers=request_headers(request),
                    )
                return read_answer(request, response)
            except AftercallError as error:
                wait_s = retry_wait_s(attempt, error, self._retries if request.retried else 0)
                if wait_s is None:
                    raise
            await asyncio.sleep(wait_s)

    async def _get_model(self, path: str, model: type[ModelT], **asked: QueryValue) -> ModelT:
        return await self.send(Request("GET", path + query_string(asked), model_reader(model)))

    async def _send_body(
        self,
        method: str,
        path: str,
        body: models.WireModel,
        answer: type[ModelT],
        *,
        masked: Sequence[str] = (),
    ) -> ModelT:
        if self.redactor is not None:
            body = self.redactor.fields(body, masked)
        content = body.model_dump_json().encode()
        return await self.send(Request(method, path, model_reader(answer), content))

    async def _probe_path(self, path: str) -> bool:
        try:
            await self.send(Request("GET", path, reads_nothing, retried=False))
        except (ServiceUnreachableError, ServiceFailedError):
            return False
        return True

    def _mask_text(self, text: str) -> str:
        return text if self.redactor is None else self.redactor.text(text)
