"""The column of a table of failures that says how many there were before."""

from datetime import UTC, datetime

from retrieval.usage.spans import span_before
from service.dashboard.look import Look
from service.dashboard.tables import Column


def before_column(look: Look) -> list[Column]:
    """It, or nothing where what was before a window is not kept, as before 30d."""
    if span_before(look.window, datetime.now(UTC)) is None:
        return []
    return [Column("before", "Before", "number", note="In the same span before it.")]
