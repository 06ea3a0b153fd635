"""What the service states of the coding agents whose hooks it answers."""

from typing import Literal

from pydantic import Field

from aftercall.models.base import Name, WireModel


class HookEventFacts(WireModel):
    """An event of a client, and what an answer to it may do there."""

    name: Name
    kind: Literal["before", "after", "failure", "transcript", "end"]
    changes: bool
    """Whether the call's input may be changed, or another call be made in its place."""
    refuses: bool
    advises: bool
    """Whether the model may be shown something."""


class HookClientFacts(WireModel):
    """A client whose payloads `POST /hooks/{client}` takes."""

    name: Name
    title: Name
    version: Name
    """The one that was looked at."""
    seen: bool
    """Whether it was run; else its hooks are read by their published form."""
    tools: list[Name] = Field(default_factory=list)
    """Its own tools whose parameters are known."""
    events: list[HookEventFacts] = Field(default_factory=list)


class HookClients(WireModel):
    """Answer of `GET /hooks`."""

    clients: list[HookClientFacts]
