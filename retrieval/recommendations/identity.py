"""Ids of recommendations: the same matter has the same id, whoever asks and whenever."""

import json
import uuid
from typing import Literal

from aftercall.models import RecommendationKind
from mongo.records import ToolKey

_IDS = uuid.UUID("7d0b7a4e-5f3c-5b7e-8a55-0f6a1c2d9b31")

Matter = Literal["repair", "tighten_contract", "boundaries", "review_promotion"]
"""What a recommendation is about. `split` and `recompose` are one matter, `boundaries`: the tool
does several jobs. Which of the two is suggested changes as other tools come and go; what a builder
did about it stays."""

TOOL_MATTERS: tuple[Matter, ...] = ("repair", "tighten_contract", "boundaries")
"""Those of one tool; the other is one of a namespace."""

MATTERS: dict[RecommendationKind, Matter] = {
    "repair": "repair",
    "tighten_contract": "tighten_contract",
    "split": "boundaries",
    "recompose": "boundaries",
    "review_promotion": "review_promotion",
}


def id_of_tool_matter(matter: Matter, tool: ToolKey) -> str:
    """The id of a matter of one tool, as executions name it; registered or not makes no odds."""
    return _id(matter, tool.workspace, tool.server_name, tool.tool_name)


def id_of_namespace_matter(matter: Matter, workspace: str, namespace: str) -> str:
    """The id of a matter of one namespace."""
    return _id(matter, workspace, namespace)


def _id(*parts: str | None) -> str:
    return str(uuid.uuid5(_IDS, json.dumps(parts)))
