"""Known tools: what is known of each tool, told within a budget of tokens, for a prompt or a page.

Everything that tools, agents and users said is data here: bounded, escaped, quoted, and told only
where it is common knowledge. Pure; `service.known_tools` reads the stores.
"""

from retrieval.known_tools.common import ToolRecord
from retrieval.known_tools.facts import ToolFacts, facts_of, use_of
from retrieval.known_tools.markdown import markdown_page
from retrieval.known_tools.prompt import prompt_block
from retrieval.known_tools.text import estimate_tokens

__all__ = [
    "ToolFacts",
    "ToolRecord",
    "estimate_tokens",
    "facts_of",
    "markdown_page",
    "prompt_block",
    "use_of",
]
