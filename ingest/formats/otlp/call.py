"""A call of a tool as one convention tells it, before it is put together with its surroundings."""

from dataclasses import dataclass, fields


@dataclass(slots=True)
class ToolCall:
    """What a span says of the call. None where it says nothing."""

    name: str | None = None
    call_id: str | None = None
    arguments: object = None
    named_arguments: bool = False
    """Whether arguments are always an object."""
    result: object = None
    server_name: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    failed: bool | None = None
    """Where the convention has a word of its own for it."""
    input_schema: object = None

    def completed_by(self, other: "ToolCall") -> "ToolCall":
        """This, with what only `other` says."""
        for each in fields(self):
            if getattr(self, each.name) is None:
                setattr(self, each.name, getattr(other, each.name))
        return self
