"""Known tools: what is known of each tool, shown within a budget of tokens, for a prompt or a page.

Everything that tools, agents and users stated is data here: bounded, escaped, quoted, and shown
only where it is common knowledge. Pure; `service.api.known_tools` reads the stores.
"""
