"""The code in a chat model's answer: one fenced block, or one JSON object. Anything else is told.

An answer is text from a stranger. Nothing in it names a file, and nothing is mended by guessing:
half of a program, or the wrong one of two, could pass for the whole.
"""

import json
import re
from typing import NamedTuple

from aftercall.evolution.tasks import EvolvedCode, UnusableAnswerError

_MAX_SUMMARY = 500

# Models that think aloud (DeepSeek-R1, Qwen) put drafts before the answer, code blocks among them.
_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*?)[ \t]*", re.DOTALL)

_FORMS = "answer with exactly one fenced code block, or one JSON object of code and summary"


class _Block(NamedTuple):
    info: str
    text: str


def read_code(answer: str, *, language: str) -> EvolvedCode:
    """The code that an answer gives.

    Args:
        answer: the text of the assistant's message.
        language: the tool's language; a block that is marked `json` is read as the JSON form unless
            the tool is JSON itself.

    Raises:
        UnusableAnswerError: no code, several blocks, a block without its end, JSON of another
            shape; the message says which, and never repeats the answer.
    """
    text = _THOUGHTS.sub("", answer, count=1).replace("\r\n", "\n").strip()
    if not text:
        raise UnusableAnswerError(f"the answer is empty; {_FORMS}")
    if text.startswith("{"):
        return _from_json(text)
    blocks, prose = _blocks(text)
    if not blocks:
        raise UnusableAnswerError(f"the answer holds no code block; {_FORMS}")
    if len(blocks) > 1:
        raise UnusableAnswerError(
            f"the answer holds {len(blocks)} code blocks, and which one is meant is not known; "
            f"{_FORMS}"
        )
    block = blocks[0]
    if block.info.lower() == "json" and language != "json":
        return _from_json(block.text)
    return _evolved(block.text, prose)


def _from_json(text: str) -> EvolvedCode:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnusableAnswerError(f"the answer begins like JSON and is none{where}") from error
    if not isinstance(value, dict) or not isinstance(value.get("code"), str):
        raise UnusableAnswerError('the JSON in the answer has no text under the key "code"')
    if set(value) - {"code", "summary"}:
        # A `file` or `path` among them would be a wish to write somewhere.
        raise UnusableAnswerError('the JSON in the answer has keys besides "code" and "summary"')
    summary = value.get("summary") or ""
    if not isinstance(summary, str):
        raise UnusableAnswerError('"summary" in the answer is no text')
    return _evolved(value["code"], summary)


def _evolved(code: str, summary: str) -> EvolvedCode:
    if not code.strip():
        raise UnusableAnswerError(f"the code in the answer is empty; {_FORMS}")
    return EvolvedCode(code, " ".join(summary.split())[:_MAX_SUMMARY])


def _blocks(text: str) -> tuple[list[_Block], str]:
    """The fenced blocks of Markdown (CommonMark 4.5), and the text around them."""
    blocks: list[_Block] = []
    prose: list[str] = []
    inside: list[str] | None = None
    opening, info = "", ""
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        if inside is None:
            if fence and not ("`" in fence["info"] and fence["fence"].startswith("`")):
                opening, info, inside = fence["fence"], fence["info"], []
            else:
                prose.append(line)
        elif fence and not fence["info"] and fence["fence"].startswith(opening):
            blocks.append(_Block(info, "\n".join(inside)))
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        raise UnusableAnswerError("the code block in the answer has no end; it may be cut off")
    return blocks, "\n".join(prose)
