"""Proposals: from a reading and what is known of the tool to changed parameters."""
