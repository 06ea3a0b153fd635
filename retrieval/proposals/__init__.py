"""Proposals: from a reading and what is known of the tool to changed parameters."""

from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal, propose
from retrieval.proposals.option import Option, Trials

__all__ = ["Case", "Option", "Proposal", "Trials", "propose"]
