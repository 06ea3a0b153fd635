"""What a word means for its reader; never told by colour alone."""

from typing import Final, Literal

Tone = Literal["good", "bad", "warn", "plain"]

SIGNS: Final[dict[Tone, str]] = {"good": "✓ ", "bad": "✗ ", "warn": "! ", "plain": ""}
"""What stands before the word."""
