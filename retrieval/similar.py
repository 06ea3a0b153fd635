"""Similar executions: `POST /similar`."""

from typing import cast

import numpy as np

from aftercall.json_values import JsonObject, bounded_json
from aftercall.models import SimilarExecution, SimilarRequest, SimilarResponse
from aftercall.redaction import Redactor
from embeddings.protocol import Embedder
from embeddings.text import call_text, terms_text
from mongo.protocol import EventLog
from retrieval.index.protocol import IndexQuery, Kind, VectorIndex
from retrieval.log import executions
from retrieval.memory import Memory
from retrieval.parameters import MAX_MESSAGE


async def find_similar(
    workspace: str,
    request: SimilarRequest,
    *,
    log: EventLog,
    memory: Memory,
    index: VectorIndex,
    embedder: Embedder,
    redactor: Redactor,
) -> SimilarResponse:
    """Executions of a tool that are near to the given call, nearest first.

    One execution per distinct document is the latest it stands for.
    """
    looked_at = bounded_json(request.parameters, max_chars=MAX_MESSAGE)
    parameters = redactor.parameters(request.tool_name, cast("JsonObject", looked_at))
    context = None if request.context is None else redactor.text(request.context[:MAX_MESSAGE])
    text = call_text(request.tool_name, parameters, context)
    vector = (await embedder.embed([text], "query"))[0].astype(np.float32, copy=False)
    kind: Kind = "success" if request.outcome == "success" else "reflection"
    query = IndexQuery(
        workspaces=(workspace,), kind=kind, vector=vector, terms=terms_text(text),
        limit=request.limit, tool_name=request.tool_name, server_name=request.server_name,
    )  # fmt: skip
    hits = (await index.search([query]))[0]
    documents = await memory.documents(workspace, [hit.document_id for hit in hits])
    latest = {
        document.execution_ids[-1]: hit.similarity
        for hit in hits
        if (document := documents.get(hit.document_id)) and document.execution_ids
    }
    stored = await executions(log, workspace, list(latest))
    found = [
        SimilarExecution(
            execution=redactor.call(each.execution),
            similarity=round(latest[each.execution.execution_id], 4),
        )
        for each in stored
    ]
    return SimilarResponse(executions=sorted(found, key=lambda hit: -hit.similarity))
