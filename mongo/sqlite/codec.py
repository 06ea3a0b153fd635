"""Values as SQLite keeps them: as all stores do."""

from mongo.codec import (
    Model,
    from_microseconds,
    parse,
    server_column,
    server_name,
    to_microseconds,
)

__all__ = ["Model", "from_microseconds", "parse", "server_column", "server_name", "to_microseconds"]
