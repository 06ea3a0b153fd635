"""Counts and checksums that are the same for the same records, in whatever order and store.

The checksum of a kind is the sum modulo 2^256 of SHA-256 over each record's canonical JSON. A sum,
unlike an exclusive or, tells a record that is there twice from one that is not there at all.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from aftercall.json_values import JsonObject, JsonValue, canonical_json

_MODULUS = 2**256


@dataclass(slots=True)
class Tally:
    """How many records of a kind there are, and their checksum."""

    count: int = 0
    total: int = 0

    def add(self, fields: JsonObject) -> bytes:
        """Count a record; its canonical JSON in UTF-8."""
        encoded = canonical_json(fields).encode()
        self.count += 1
        self.total = (self.total + int.from_bytes(hashlib.sha256(encoded).digest())) % _MODULUS
        return encoded

    @property
    def checksum(self) -> str:
        """The sum, 64 hexadecimal digits."""
        return f"{self.total:064x}"


def checksum_of_all(tallies: Mapping[str, Tally]) -> str:
    """One checksum over the counts and checksums of all kinds, 64 hexadecimal digits."""
    told: dict[str, JsonValue] = {
        kind: [tally.count, tally.checksum] for kind, tally in tallies.items()
    }
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()
