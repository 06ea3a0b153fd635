"""Proposals: from a reading and what is known of the tool to changed parameters."""

from retrieval.proposals.case import Case
from retrieval.proposals.compose import Proposal, options_of, propose
from retrieval.proposals.option import Option, Trials

__all__ = ["Case", "Option", "Proposal", "Trials", "options_of", "propose"]
