"""Registered tools and promotions for the tests of the registry and of lineage."""

from datetime import UTC, datetime
from typing import Any

from aftercall.models import Promotion, Tool
from mongo.contents import StoredPromotion, StoredTool

AT = datetime(2026, 3, 1, tzinfo=UTC)


def stored(tool_id: str, **fields: Any) -> StoredTool:
    """A registered tool whose name is its id, if not said otherwise."""
    return StoredTool("w", Tool(**{"tool_id": tool_id, "name": tool_id, "updated_at": AT} | fields))


def promoted(namespace: str, version: str = "1.1.0", original: str = "1.0.0") -> StoredPromotion:
    """A promotion, with what it inherited."""
    promotion = Promotion(
        evolved_version=version,
        evolved_file=f"tools/{namespace}_v{version.replace('.', '_')}.py",
        original_version=original,
        promoted_at=AT,
    )
    return StoredPromotion("w", namespace, promotion, inherited_quality=0.8)
