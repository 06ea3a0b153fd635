"""Light, dark, or as the system has it.

It is remembered in a cookie that is read when a page is built, so that no page flashes in the
other one first.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

Theme = Literal["auto", "light", "dark"]

THEMES: Final[tuple[Theme, ...]] = get_args(Theme)

COOKIE: Final = "aftercall_theme"


def theme_of(cookies: Mapping[str, str]) -> Theme:
    """The chosen one; `auto` for none and for anything else."""
    chosen = cookies.get(COOKIE)
    return next((theme for theme in THEMES if theme == chosen), "auto")
