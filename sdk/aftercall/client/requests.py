"""One request as plain data: what is sent, and how the answer is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

from pydantic import ValidationError

from aftercall.errors import ProtocolError, QuestionTooLongError
from aftercall.models import WireModel

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=WireModel)

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Most bytes in the body of one request (contract)."""

MAX_QUERY_CHARS = 60_000
"""Most characters of a query as it is sent: HTTP clients and servers end near 65,536."""


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One request. `path` is percent-encoded; `read` raises `ProtocolError` on a foreign answer.

    Requests that may be done twice without a change are `retried`. A probe is not, as its question
    is how things are now, and a rollback is not, as two of them go back twice.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = None
    retried: bool = True


def segment(text: str) -> str:
    """One segment of a path, whatever the id holds.

    Raises:
        ValueError: it is empty.
    """
    if not text:
        raise ValueError("the id is empty; a request would go to another endpoint")
    # Left as they are, dots would be resolved: DELETE /tools/.. would become DELETE /.
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def query(fields: Mapping[str, str | int | bool | Sequence[str] | None]) -> str:
    """The query of a path with its question mark; empty when no field has a value.

    A field of several texts stands there once for each.

    Raises:
        QuestionTooLongError: it is too long for a URL.
    """
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in fields.items()
        if value is not None
    }
    text = urlencode(given, doseq=True, quote_via=quote)
    if len(text) > MAX_QUERY_CHARS:
        raise QuestionTooLongError(
            f"the question has {len(text):,} characters as it is sent; at most "
            f"{MAX_QUERY_CHARS:,} fit, so say it in fewer words"
        )
    return f"?{text}" if text else ""


def body(model: WireModel) -> bytes:
    """A model as the body of a request."""
    return model.model_dump_json().encode()


def reads(model: type[ModelT]) -> Callable[[bytes], ModelT]:
    """Reads an answer as a model."""

    def read(content: bytes) -> ModelT:
        try:
            # A newer service may send further fields; that is no reason to fail.
            return model.model_validate_json(content, extra="ignore")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise ProtocolError(
                f"the answer is no {model.__name__} of the contract ({where}: {first['msg']}); "
                "does base_url name an Aftercall service of this version?"
            ) from error

    return read


def reads_nothing(_content: bytes) -> None:
    """Any answer of success will do."""
