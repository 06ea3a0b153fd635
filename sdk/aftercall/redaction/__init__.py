"""Redaction: secrets are masked before anything is sent, stored or returned."""

from aftercall.redaction.redactor import DEFAULT_REDACTOR, REDACTED, Redactor, is_redacted

__all__ = ["DEFAULT_REDACTOR", "REDACTED", "Redactor", "is_redacted"]
