"""How many planted secrets are masked behind escapes of URLs, JSON, HTML and base64.

Every kind of `secret_kinds.toml` is put behind each escape, and behind two or three in one another.
It is masked if a reader who undoes up to four layers of escapes finds it nowhere in the call.
"""

import base64
import binascii
import html
import json
import random
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

from aftercall.models import FailedCall
from aftercall.redaction import Redactor
from bench.quality import secret_masks

Escape = Callable[[str], str]
_LONG = 12
_RUN = re.compile(r"[A-Za-z0-9+/_-]{12,}")
_JSON_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nt"\\/]))')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _as_code_points(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else f"\\u{ord(c):04x}" for c in text)


def _as_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _as_url_base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


SINGLE: dict[str, Escape] = {
    "a space in a URL": lambda text: f"q=use%20{text}",
    "a quote in a URL": lambda text: f"q=%22{text}%22&page=2",
    "a URL's parameter": lambda text: f"next={quote(text, safe='')}",
    "a line end in JSON": lambda text: f"first\\n{text}\\nlast",
    "a tab in JSON": lambda text: f"first\\t{text}\\tlast",
    "JSON in JSON": lambda text: json.dumps(json.dumps({"text": text})),
    "code points in JSON": lambda text: f"is\\u003d{_as_code_points(text)}\\u0022",
    "HTML": lambda text: f"&lt;b&gt;{html.escape(text)}&lt;/b&gt;",
    "code points in HTML": lambda text: f"is&#61;{text}&#x22;",
    "a colour of the terminal": lambda text: f"\x1b[32m{text}\x1b[0m",
    "a colour in JSON": lambda text: f"\\u001b[1;31m{text}\\u001b[0m",
}
BASE64: dict[str, Escape] = {
    "base64": lambda text: f"value {_as_base64(text)}",
    "base64 of URLs": lambda text: f"q={_as_url_base64(text)}&page=2",
    "base64 of more": lambda text: _as_base64(f"a: {text}\nb: 1"),
}
_LAYERS: tuple[Escape, ...] = (
    lambda text: f"a%20{quote(text, safe='')}%22", lambda text: json.dumps(f"x\n{text}\t"),
    lambda text: f"&quot;{html.escape(text)}&quot;", _as_base64, _as_code_points,
)  # fmt: skip


def nested(text: str, rng: random.Random) -> str:
    """A text behind two or three layers of escapes."""
    for layer in rng.choices(_LAYERS, k=rng.choice([2, 3])):
        text = layer(text)
    return text


def _undone(text: str) -> Iterator[str]:
    yield unquote(text)
    yield html.unescape(text)
    yield _JSON_ESCAPE.sub(
        lambda m: chr(int(m[1], 16)) if m[1] else {"n": "\n", "t": "\t"}.get(m[2], m[2]), text
    )
    yield _COLOUR.sub(" ", text)
    for run in _RUN.findall(text):
        for start in range(4):
            part = run.translate(str.maketrans("-_", "+/"))[start:]
            part = part[: len(part) - (len(part) % 4 == 1)]
            try:
                decoded = base64.b64decode(part + "=" * (-len(part) % 4), validate=True)
            except binascii.Error:
                continue
            shown = decoded.decode("latin-1")
            if re.search(r"[\x20-\x7e]{8}", shown):
                yield shown


def readable(text: str, layers: int = 4) -> set[str]:
    """The texts that a reader gets out of a text by undoing up to so many layers of escapes."""
    seen, fresh = {text}, {text}
    for _ in range(layers):
        fresh = {other for each in fresh for other in _undone(each)} - seen
        seen |= fresh
    return seen


def hidden(call: dict[str, object], secret: str, redactor: Redactor) -> bool:
    """Whether a masked call tells nothing of the secret, in whatever layer."""
    masked = redactor.call(FailedCall.model_validate(call))
    parts = [secret, secret[len(secret) // 2 :]] if len(secret) >= _LONG else [secret]
    texts = readable("\n".join(_texts(masked.model_dump(mode="json"))))
    return not any(part in text for part in parts for text in texts)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def is_token(template: str) -> bool:
    """Whether a kind's text is the secret alone, so that its form gives it away."""
    return template.startswith("<<") and template.endswith(">>")


def measure(escapes: dict[str, Escape], *, tokens: bool, seed: int = 7) -> secret_masks.Score:
    """Of the kinds of all sections, behind each of the escapes; of `tokens` those alone."""
    score, redactor, rng = secret_masks.Score(), Redactor(), random.Random(seed)
    for section in secret_masks.SECTIONS:
        for kind, template in secret_masks.kinds()[section].items():
            if tokens and not is_token(template):
                continue
            score.kinds += 1
            text, secret = secret_masks.planted(template, rng)
            for name, escape in escapes.items():
                for call in [*secret_masks.carriers(escape(text))][:3]:
                    score.planted += 1
                    if hidden(call, secret, redactor):
                        score.masked += 1
                    else:
                        missed = f"{kind} behind {name}"
                        score.others[missed] = score.others.get(missed, 0) + 1
    return score


def nestings(seed: int = 7) -> dict[str, Escape]:
    """One that draws two or three layers for each text."""
    rng = random.Random(seed)
    return {"layers in one another": lambda text: nested(text, rng)}


def table() -> list[str]:
    """The lines of the page: of each group of escapes how many secrets were masked."""
    groups = {
        "behind an escape of URLs, JSON, HTML or terminals": (SINGLE, False),
        "the same, vendors' tokens alone": (SINGLE, True),
        "in base64, vendors' tokens alone": (BASE64, True),
        "behind two or three layers, vendors' tokens alone": (nestings(), True),
    }
    lines = ["| behind escapes | kinds | planted | recall |", "|---|---|---|---|"]
    for name, (escapes, tokens) in groups.items():
        found = measure(escapes, tokens=tokens)
        lines.append(f"| {name} | {found.kinds} | {found.planted:,} | {found.share:.4f} |")
    return lines
