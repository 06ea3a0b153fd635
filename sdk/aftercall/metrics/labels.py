"""Which tools get a label of their own: a bounded number, and not simply the first that come.

Names come from whoever records calls. One client that invents a name per call would fill a table of
the first so many at once, and every real tool after it would be `other`. So only half of the labels
go to whoever comes first. The other half is for tools that were promised one, because they are
registered, and for tools that are called again. A label is never taken back: a series that stops
and begins anew would spoil every rate.
"""

import hashlib
from collections import OrderedDict

OTHER = "other"
"""The label of all tools without one of their own."""

MAX_CHARS = 128
"""Of a label. A server's name and a tool's together may have 513."""

CALLS_FOR_LABEL = 3
"""The call at which a tool gets a label once the first half is given: names that are made up do not
come again, and the two calls before it are counted as `other`, so none is lost."""

_NAMELESS = "unknown"
_MARK = " (tool)"
_HASH_CHARS = 8
_CANDIDATES = 10_000
"""Tools whose calls are remembered until they have a label; the latest called ones. So many are to
be borne (issue 7), and take 2 MiB."""


def tool_label(tool: str, server_name: str | None = None) -> str:
    """The label of a tool: `name`, or `server/name` where its server is known.

    At most 128 characters: a longer one ends in a hash of the whole, so that two stay two. What
    cannot be printed (line breaks, NUL, lone surrogates, marks of direction) becomes U+FFFD. A tool
    that is really called `other` is `other (tool)`.
    """
    label = f"{server_name}/{tool}" if server_name else tool or _NAMELESS
    if len(label) > MAX_CHARS - len(_MARK):
        digest = hashlib.sha256(label.encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]
        label = f"{label[: MAX_CHARS - len(_MARK) - _HASH_CHARS - 1]}…{digest}"
    if not label.isprintable():
        label = "".join(char if char.isprintable() else "\ufffd" for char in label)
    # Also what would then be called like it, and so on: different tools keep different labels.
    if label.startswith(OTHER) and not label[len(OTHER) :].replace(_MARK, ""):
        label += _MARK
    return label


class LabelRoom:
    """Says which label may have a series of its own; not safe between threads by itself.

    Args:
        max_tools: labels at most; 0 for none.
    """

    def __init__(self, max_tools: int) -> None:
        self._max_tools = max_tools
        self._first_come = (max_tools + 1) // 2
        self._given = 0
        self._promised: OrderedDict[str, None] = OrderedDict()
        # By their hashes, which nobody can foresee: names would take four times as much.
        self._candidates: OrderedDict[int, int] = OrderedDict()

    @property
    def given(self) -> int:
        """Labels that are given."""
        return self._given

    def promise(self, label: str) -> None:
        """Let a label in at its first call; of the promised, as many are known as there is room."""
        if self._max_tools:
            self._promised[label] = None
            self._promised.move_to_end(label)
            if len(self._promised) > self._max_tools:
                self._promised.popitem(last=False)

    def admits(self, label: str) -> bool:
        """Whether a label that has no series yet gets one with this call."""
        if self._given >= self._max_tools:
            return False
        if self._given >= self._first_come and label not in self._promised:
            calls = self._candidates.pop(hash(label), 0) + 1
            if calls < CALLS_FOR_LABEL:
                self._candidates[hash(label)] = calls
                if len(self._candidates) > _CANDIDATES:
                    self._candidates.popitem(last=False)
                return False
        self._promised.pop(label, None)
        self._given += 1
        if self._given >= self._max_tools:  # nobody gets in any more
            self._candidates.clear()
            self._promised.clear()
        return True
