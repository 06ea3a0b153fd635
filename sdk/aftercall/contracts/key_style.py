"""Names without their style: `movieTitles`, `movie_titles` and `Movie-Titles` are one name."""

ENVELOPES = frozenset({"result", "results", "items", "data", "value", "values"})
"""Keys that say nothing about what they hold. FastMCP puts what is no object under `result`."""

_SEPARATORS = str.maketrans("", "", "_- ")


def folded(name: str) -> str:
    """The letters of a name, without case and separators."""
    return name.translate(_SEPARATORS).casefold()


def is_envelope(key: object) -> bool:
    """Whether a key says nothing about what it holds."""
    return isinstance(key, str) and folded(key) in ENVELOPES
