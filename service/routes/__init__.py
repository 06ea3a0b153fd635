"""The routes of the wire contract, one file per concern."""
