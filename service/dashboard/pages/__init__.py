"""The pages, in the order of the navigation."""

from service.dashboard.page import Page
from service.dashboard.pages import (
    agent,
    agents,
    boundaries,
    failures,
    overview,
    pattern,
    suggestions,
    tool,
    tools,
    try_it,
)

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    failures.PAGE,
    pattern.PAGE,
    tools.PAGE,
    *tool.PAGES,
    agents.PAGE,
    agent.PAGE,
    boundaries.PAGE,
    suggestions.PAGE,
    try_it.PAGE,
)
