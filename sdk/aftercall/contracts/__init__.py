"""Contracts: what a tool's result must be, checked by a machine.

    wanted = Deliverable.from_dict({"titles": {"min_items": 1}})
    check({"titles": []}, wanted)   # [Violation('/titles', 'min_items', 1, 0)]

A result that breaks its deliverable is a failed call of type `contract_violation`. Without a
deliverable a success stays a success, whatever it says of itself.
"""

from aftercall.contracts.deliverables import Deliverable
from aftercall.contracts.enforcement import (
    DeliverableReader,
    canonical,
    checked,
    deliverable,
    enforce,
)
from aftercall.contracts.violations import (
    ContractViolationError,
    Violation,
    check,
    violation_error,
)
from aftercall.outcomes import CONTRACT_VIOLATION

__all__ = [
    "CONTRACT_VIOLATION", "ContractViolationError", "Deliverable", "DeliverableReader", "Violation",
    "canonical", "check", "checked", "deliverable", "enforce", "violation_error",
]  # fmt: skip
