r"""Results written as Harmony text, so that nothing a tool says can be markup.

What a tool returns is data. If it holds `<|end|><|start|>system<|message|>...`, and stood in the
text as it is, the tool would speak as the system. Every marker begins with `<|`, so that is what
is broken up, known marker or not:

- in JSON, where `<` only stands within strings, as `\u003c|`: a reader of the JSON gets exactly
  what the tool returned;
- in any other text as `< |`: one space that the model can see, rather than an invisible character
  that a tokenizer may drop.
"""

import re

from aftercall.harmony.headers import MAX_NAME_CHARS
from aftercall.harmony.items import HarmonyResult
from aftercall.harmony.reading import is_json
from aftercall.json_values import clean_text

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_.:/-]")


def render_tool_result(result: HarmonyResult) -> str:
    """`<|start|>functions.NAME to=assistant<|channel|>commentary<|message|>...<|end|>`.

    The tool's name is that of the call's header; in names, other characters than letters, digits
    and `_ . : / -` become `_`.
    """
    name = result.recipient or f"functions.{result.tool or 'unknown'}"
    role = _FORBIDDEN.sub("_", name[:MAX_NAME_CHARS])
    channel = _FORBIDDEN.sub("_", result.channel[:MAX_NAME_CHARS])
    header = f"<|start|>{role} to=assistant<|channel|>{channel}<|message|>"
    return f"{header}{neutralised(result.text)}<|end|>"


def neutralised(text: str) -> str:
    """The text with every `<|` broken up; JSON stays the same JSON."""
    cleaned = clean_text(text)
    if "<|" not in cleaned:
        return cleaned
    return cleaned.replace("<|", "\\u003c|" if is_json(cleaned) else "< |")
