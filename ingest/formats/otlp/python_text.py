"""`repr` of Python's plain values, read as JSON.

LangChain hands a tool's input to its tracers as `str(dict)`, and what they write is that:
`{'city': 'Oslo', 'days': None}`. Python's own reader of literals is a compiler: it warns on stderr
about what it finds, and its memory follows no bound. This is one pass over tokens.
"""

import json
import re
from typing import Any

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
    r"""|(?P<word>True|False|None)\b"""
    r"""|(?P<number>-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"""
    r"""|(?P<mark>[{}\[\]:,])"""
    r"""|\s+""",
    re.ASCII | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.ASCII | re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_LAST_CODE_POINT = 0x10FFFF


def json_of_python(text: str) -> Any:
    """The value of which `text` is the `repr`: dicts, lists, texts, numbers, booleans and None.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deep.
    """
    parts: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError("no repr of plain values")
        if token["text"]:
            parts.append(json.dumps(_ESCAPE.sub(_unescaped, token["text"][1:-1])))
        elif token["word"]:
            parts.append(_WORDS[token["word"]])
        else:
            parts.append(token[0])
        at = token.end()
    return json.loads("".join(parts))


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    point = int(code[1:], 16)
    return chr(point) if point <= _LAST_CODE_POINT else "�"
