"""The hash that stands for a call's arguments, and the masking of what a tool says about them.

Seed 001 hashes the first 200 characters of the canonical JSON. Here the secrets are masked before,
for a hash keeps no secret that can be guessed: whoever knows the other arguments tries all PINs in
a moment. Equal calls still have equal hashes, which is what the hash is for; calls that differ only
in a secret, or only beyond those characters, have the same one. Arguments without secrets have
exactly the seed's hash. What is no secret by name or form can be guessed from the hash.
"""

import hashlib
from dataclasses import dataclass

from aftercall.bounded import bounded_text
from aftercall.events.model import MAX_MESSAGE_CHARS
from aftercall.json_values import JsonObject, JsonValue, canonical_json, clean_text, make_json_value
from aftercall.models.calls import ExecutionError, FailedCall
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

PREVIEW_CHARS = 200
"""Characters of the canonical JSON that the hash is made of (seed 001)."""

_WINDOW_CHARS = 2000
"""Of each text that is masked: masking costs some 0.2 ms for a thousand characters, and a call
waits for it. Ten times the preview, since a masked text is shorter than what it stands for."""


@dataclass(frozen=True, slots=True)
class Preview:
    """As much of a call's arguments as its events need.

    Args:
        tool: the tool's name, for the redactor's allowlist.
        head: the beginning of the arguments, unmasked.
        redactor: masks secrets.
    """

    tool: str
    head: JsonObject
    redactor: Redactor

    def hash(self) -> str:
        """SHA-256, in hex, of the first 200 characters of the masked arguments."""
        return _sha256(canonical_json(self.redactor.parameters(self.tool, self.head)))

    def message(self, text: str) -> str:
        """What a tool said, bounded, without secrets and without masked arguments repeated."""
        said = FailedCall(
            agent="unknown",
            tool_name=self.tool,
            parameters=self.head,
            error=ExecutionError(message=clean_text(text[:_WINDOW_CHARS])),
        )
        return bounded_text(self.redactor.call(said).error.message, MAX_MESSAGE_CHARS)


def preview(tool: str, arguments: JsonObject, redactor: Redactor) -> Preview:
    """The preview of arguments that are plain JSON."""
    members = PREVIEW_CHARS
    head: JsonObject = {}
    for name in sorted(arguments):
        if members <= 0:
            break
        head[name[:_WINDOW_CHARS]], members = _head(arguments[name], members)
    return Preview(tool, head, redactor)


def args_preview_hash(
    arguments: JsonObject, *, tool: str = "unknown", redactor: Redactor = DEFAULT_REDACTOR
) -> str:
    """The `args_preview_hash` of a call; values outside JSON count as their text."""
    made = make_json_value(arguments)
    return preview(tool, made if isinstance(made, dict) else {}, redactor).hash()


def text_preview_hash(payload: str, redactor: Redactor = DEFAULT_REDACTOR) -> str:
    """The hash of a payload that is no JSON: of its first 200 characters, masked."""
    return _sha256(masked_text(payload, redactor))


def masked_text(text: str, redactor: Redactor) -> str:
    """The beginning of a text, clean and without secrets."""
    return redactor.text(clean_text(text[:_WINDOW_CHARS]))


def _head(value: JsonValue, members: int) -> tuple[JsonValue, int]:
    """The first `members` values, in canonical order, and how many of them are left.

    Every value makes at least one character of canonical JSON, so what is left out of the first
    200 values could not have shown in the first 200 characters.
    """
    members -= 1
    if isinstance(value, str):
        return value[:_WINDOW_CHARS], members
    if isinstance(value, dict):
        kept: JsonObject = {}
        for name in sorted(value):
            if members <= 0:
                break
            kept[name[:_WINDOW_CHARS]], members = _head(value[name], members)
        return kept, members
    if isinstance(value, list):
        items: list[JsonValue] = []
        for item in value:
            if members <= 0:
                break
            made, members = _head(item, members)
            items.append(made)
        return items, members
    return value, members


def _sha256(text: str) -> str:
    return hashlib.sha256(text[:PREVIEW_CHARS].encode()).hexdigest()
