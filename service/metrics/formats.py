"""Which form of the page a scraper gets: Prometheus' text or OpenMetrics.

`prometheus_client` chooses, of those that we know it to write well: it raises on a version that is
no number, repeats the asked version in its answer whatever that is, and spells names otherwise for
schemes that ours do not need.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

_OPEN_METRICS = "application/openmetrics-text"
_TEXT = "text/plain"
_MOST_OFFERS = 20
_VERSION = "1.0.0"
_UTF8 = "allow-utf-8"
_PLAIN = "underscores"


@dataclass(frozen=True, slots=True)
class PageFormat:
    """How the page is written."""

    encode: Callable[[Collector], bytes]
    content_type: str

    @property
    def is_open_metrics(self) -> bool:
        """Whether it is OpenMetrics, which names the families of counters otherwise."""
        return self.content_type.startswith(_OPEN_METRICS)


def format_for(accept: str) -> PageFormat:
    """The first form that is accepted and known; Prometheus' text 0.0.4 where there is none.

    Args:
        accept: the header, any text; only its first 20 offers are looked at.
    """
    return PageFormat(*choose_encoder(",".join(_known(accept))))


def _known(accept: str) -> Iterator[str]:
    for offer in accept.split(",", _MOST_OFFERS)[:_MOST_OFFERS]:
        media_type, *rest = (part.strip() for part in offer.split(";"))
        given = dict(part.partition("=")[::2] for part in rest)
        version = given.get("version", _VERSION if media_type == _OPEN_METRICS else "")
        if media_type in {_OPEN_METRICS, _TEXT} and version == _VERSION and given.get("q") != "0":
            escaping = _UTF8 if given.get("escaping") == _UTF8 else _PLAIN
            yield f"{media_type}; version={_VERSION}; escaping={escaping}"
