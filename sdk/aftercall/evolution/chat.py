"""An evolver that asks a chat model through the OpenAI-compatible API: Ollama, vLLM, OpenAI, ..."""

import asyncio
import json
import re
from typing import Any, NoReturn

import httpx2
from pydantic import BaseModel, ConfigDict, ValidationError

from aftercall.client.transport import checked_base_url, full_jitter_s
from aftercall.errors import ConfigurationError
from aftercall.evolution.answers import read_code
from aftercall.evolution.prompt import messages_for
from aftercall.evolution.tasks import (
    EvolutionTask,
    EvolvedCode,
    EvolverError,
    UnusableAnswerError,
)
from aftercall.json_values import clean_text
from aftercall.redaction import DEFAULT_REDACTOR

_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_BASE_WAIT_S, _MAX_WAIT_S = 0.5, 10.0
_MAX_SHOWN = 300
_KEY = re.compile(r"[!-~]+", re.ASCII)


class ChatEvolver:
    """Asks a chat model for the next version of a tool.

    Args:
        base_url: of the API, up to and without `/chat/completions`; for instance
            `http://127.0.0.1:11434/v1` (Ollama) or `https://api.openai.com/v1`.
        model: the model's name there.
        api_key: sent as a bearer token and nowhere else; in no error and no log.
        timeout_s: seconds for one answer in all, retries and their waits included.
        connect_timeout_s: seconds to wait for a connection.
        max_tokens: most tokens of an answer; None leaves it to the server. It goes as `max_tokens`,
            which all these servers read.
        temperature: 0 repeats itself most; None leaves it to the server, for some models refuse it.
        retries: how often a request is sent again after 408, 429, 5xx or a broken connection. A
            `Retry-After` in seconds is heeded when it fits into the time that is left.
        max_answer_bytes: an answer is read up to here.
        transport: another way to send, such as a proxy. Without one the environment's proxy
            variables are not read, as in `AsyncClient`.

    Raises:
        ConfigurationError: the URL or the key is none, or a number is out of range.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        connect_timeout_s: float = 5.0,
        max_tokens: int | None = 8_192,
        temperature: float | None = None,
        retries: int = 3,
        max_answer_bytes: int = 2 * 1024 * 1024,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        url = checked_base_url(base_url)
        if url.userinfo or url.query or url.fragment:
            raise ConfigurationError(
                "base_url must hold no user, password, query or fragment; pass a key as api_key"
            )
        if api_key is not None and not _KEY.fullmatch(api_key):
            raise ConfigurationError("api_key must be visible ASCII without spaces or line ends")
        if timeout_s <= 0 or retries < 0:
            raise ConfigurationError("timeout_s must be more than 0, and retries 0 or more")
        self._url = f"{str(url).rstrip('/')}/chat/completions"
        self._origin = f"{url.scheme}://{url.netloc.decode()}"
        self._model = model
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._options = {"max_tokens": max_tokens, "temperature": temperature}
        self._retries = retries
        self._max_answer_bytes = max_answer_bytes
        self._transport = transport

    async def evolve(self, task: EvolutionTask) -> EvolvedCode:
        """The new version's source, as the model wrote it; checked by nobody yet.

        Raises:
            UnusableAnswerError: cut off, refused, not one piece of code, or too long.
            EvolverError: no answer of the API in time, or it said no.
        """
        question = {
            "model": self._model,
            "messages": messages_for(task),
            "stream": False,
            **{name: value for name, value in self._options.items() if value is not None},
        }
        try:
            # One deadline over everything: a server that sends a byte now and then never lets a
            # timeout between two reads run out.
            async with asyncio.timeout(self._timeout_s):
                content = await self._ask(json.dumps(question).encode())
        except TimeoutError as error:
            raise EvolverError(
                f"{self._origin} gave no whole answer in {self._timeout_s:g} s; it may be "
                "overloaded, or timeout_s too short for this model"
            ) from error
        return await asyncio.to_thread(_code_of, content, task.language)

    async def _ask(self, question: bytes) -> bytes:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._timeout_s
        async with httpx2.AsyncClient(
            timeout=httpx2.Timeout(self._timeout_s, connect=self._connect_timeout_s),
            headers=self._headers(),
            transport=self._transport,
            trust_env=False,
            follow_redirects=False,  # the key is for this address only
        ) as http:
            attempt = 0
            while True:
                attempt += 1
                last = attempt > self._retries
                try:
                    status, wait_s, content = await self._send(http, question)
                except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
                    if last or not _may_pass(error):
                        raise EvolverError(self._trouble(error)) from None  # it holds the headers
                    wait_s = None
                else:
                    if status == httpx2.codes.OK:
                        return content
                    too_long = wait_s is not None and clock() + wait_s >= deadline
                    if last or too_long or status not in _RETRIED:
                        self._refused(status, content)
                jitter_s = full_jitter_s(attempt, base_s=_BASE_WAIT_S, cap_s=_MAX_WAIT_S)
                await asyncio.sleep(jitter_s if wait_s is None else wait_s)

    async def _send(
        self, http: httpx2.AsyncClient, question: bytes
    ) -> tuple[int, float | None, bytes]:
        """Status, the seconds that the answer asks to wait, and its body."""
        async with http.stream("POST", self._url, content=question) as response:
            packed = response.headers.get("content-encoding", "identity").lower()
            if packed != "identity":
                # Asked not to; and a small body could unpack to any size.
                raise EvolverError(f"the answer is packed as {self._shown(packed)}")
            content = bytearray()
            async for part in response.aiter_raw():
                content += part
                if len(content) > self._max_answer_bytes:
                    raise UnusableAnswerError(
                        f"the answer has more than {self._max_answer_bytes:,} bytes; "
                        "lower max_tokens, or raise max_answer_bytes"
                    )
            return (
                response.status_code,
                _seconds(response.headers.get("retry-after")),
                bytes(content),
            )

    def _headers(self) -> dict[str, str]:
        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "aftercall-sdk",
        }
        return headers if self._api_key is None else headers | {
            "authorization": f"Bearer {self._api_key}"
        }  # fmt: skip

    def _refused(self, status: int, content: bytes) -> NoReturn:
        cures = {
            400: "check model and max_tokens",
            401: "check api_key",
            403: "check api_key and what it may use",
            404: "check base_url and model",
            429: "come back later, or raise timeout_s",
        }
        if status < httpx2.codes.BAD_REQUEST:
            cure = "base_url must name the API itself; redirects are not followed"
        else:
            cure = cures.get(status, "look at the server's log")
        said = self._shown(content[:4096].decode(errors="replace"))
        raise EvolverError(
            f"{self._origin} answered with status {status}; {cure}" + (f" ({said})" if said else "")
        )

    def _trouble(self, error: Exception) -> str:
        said = self._shown(str(error))
        said = f"{type(error).__name__}: {said}" if said else type(error).__name__
        return f"no answer from {self._origin} ({said}); check base_url, and that the server runs"

    def _shown(self, text: str) -> str:
        """Text of a stranger for an error message: on one line, short, without key and secrets."""
        if self._api_key:
            text = text.replace(self._api_key, "[redacted:string:key]")
        line = " ".join(clean_text(DEFAULT_REDACTOR.text(text)).split())
        return "".join(char for char in line if char.isprintable())[:_MAX_SHOWN]


class _Lenient(BaseModel):
    # Servers add fields of their own.
    model_config = ConfigDict(extra="ignore")


class _Message(_Lenient):
    content: str | None = None
    refusal: Any = None


class _Choice(_Lenient):
    message: _Message
    finish_reason: str | None = None


class _Completion(_Lenient):
    choices: list[_Choice]


def _code_of(content: bytes, language: str) -> EvolvedCode:
    try:
        choices = _Completion.model_validate_json(content).choices
    except ValidationError as error:
        raise EvolverError(
            "the answer is no chat completion; does base_url name an OpenAI-compatible API?"
        ) from error
    if not choices:
        raise UnusableAnswerError("the answer holds no choice")
    choice = choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise UnusableAnswerError("the model refused to answer")
    if choice.finish_reason == "length":
        raise UnusableAnswerError(
            "the answer was cut off at the most tokens it may have; raise max_tokens"
        )
    return read_code(choice.message.content or "", language=language)


def _may_pass(error: Exception) -> bool:
    return isinstance(
        error, httpx2.NetworkError | httpx2.RemoteProtocolError | httpx2.ConnectTimeout
    )


def _seconds(text: str | None) -> float | None:
    """Seconds of a `Retry-After`; None for a date, which these APIs do not send."""
    digits = (text or "").strip()
    return float(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None
