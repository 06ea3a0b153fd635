"""What code must be before anything is done with it: whole, readable, and another than before.

Nothing here runs the code. Checks that do are in `aftercall.evolution.checks`.
"""

import ast
import re
import warnings
from collections.abc import Sequence

MAX_SOURCE_BYTES = 256 * 1024
"""Largest source of a tool that is evolved or accepted; a model's answer ends long before."""

PYTHON = "python"

# Characters that editors do not show and that change what a reader sees (N. Boucher, R. Anderson,
# "Trojan Source", 2021), and control characters beyond tab, line end and form feed.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


class RejectedCodeError(ValueError):
    """Code that is not accepted; the message says why, for whoever writes it again."""


def language_of(suffix: str) -> str:
    """The language of a script by its suffix, such as `.py`: `python`, or the suffix's letters."""
    return PYTHON if suffix.lower() == ".py" else suffix.lower().removeprefix(".") or "text"


def accept(code: str, *, known: Sequence[str], language: str) -> str:
    r"""The code as it is to be written: lines end in `\n`, the last one too.

    Args:
        code: the candidate.
        known: sources that it must differ from: the one it was made from, the first of all.
        language: as `language_of`; only Python is parsed.

    Raises:
        RejectedCodeError: too large, not UTF-8, with unseen characters, not Python, or but for
            comments and layout the same as a known one.
    """
    clean = _lines(code)
    _check_text(clean)
    tree = _parsed(clean) if language == PYTHON else None
    if tree is not None and not tree.body:
        raise RejectedCodeError("the code holds no statement")
    for source in known:
        if _bare(clean) == _bare(source) or (tree is not None and _same(tree, source)):
            raise RejectedCodeError("the code does the same as before; change what makes it fail")
    return clean


def _lines(code: str) -> str:
    return code.replace("\r\n", "\n").replace("\r", "\n").strip("\n") + "\n"


def _bare(code: str) -> list[str]:
    return [line.rstrip() for line in code.strip().splitlines()]


def _check_text(code: str) -> None:
    try:
        size = len(code.encode())
    except UnicodeEncodeError as error:
        raise RejectedCodeError("the code holds characters that UTF-8 cannot write") from error
    if size > MAX_SOURCE_BYTES:
        raise RejectedCodeError(f"the code has {size:,} bytes; at most {MAX_SOURCE_BYTES:,}")
    if unseen := _UNSEEN.search(code):
        line = code.count("\n", 0, unseen.start()) + 1
        raise RejectedCodeError(
            f"line {line} holds the unseen character U+{ord(unseen[0]):04X}; write it as an escape"
        )


def _parsed(code: str) -> ast.Module:
    # As bytes, for a coding comment counts when the file is run. Compiling finds what parsing lets
    # pass, such as `return` outside a function; neither runs anything.
    content = code.encode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(content)
            compile(content, "<candidate>", "exec", dont_inherit=True)
        except SyntaxError as error:
            where = "" if error.lineno is None else f" at line {error.lineno}"
            raise RejectedCodeError(f"the code is no Python{where}: {error.msg}") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise RejectedCodeError(
                f"the code cannot be parsed ({type(error).__name__}); nest it less deeply"
            ) from error
    return tree


def _same(tree: ast.Module, source: str) -> bool:
    """Whether only comments and layout differ; what is wrong with `source` may be its syntax."""
    try:
        return ast.dump(tree) == ast.dump(_parsed(_lines(source)))
    except (RejectedCodeError, UnicodeEncodeError, RecursionError, MemoryError):
        return False
