"""Settings that are each fine and harm together: refused or told before anything is opened."""

from collections.abc import Iterator

from aftercall.errors import ConfigurationError
from service.config.settings import Settings

_HOURS = 24.0


def check_serving(settings: Settings) -> None:
    """Refuse what would leave a service useless without anybody noticing.

    Raises:
        ConfigurationError: naming the variables and the cure.
    """
    shares_nothing = settings.mongo.uri is None or settings.qdrant.url is None
    if shares_nothing and not settings.indexing.here:
        raise ConfigurationError(
            "AFTERCALL_INDEXING_HERE is false, so that nothing would be learned: a worker needs "
            "stores that processes can share. Unset it, or set AFTERCALL_MONGO_URI and "
            "AFTERCALL_QDRANT_URL"
        )


def harmful(settings: Settings) -> Iterator[str]:
    """What may be meant and rarely is, each with its cure."""
    kept_h, every_h = settings.retention.days * _HOURS, settings.nightly.every_h
    if 0 < kept_h < 2 * every_h:
        yield (
            f"executions are deleted after {settings.retention.days:g} days and the nightly run "
            f"comes every {every_h:g} hours, so that some go before they are counted: let "
            "AFTERCALL_RETENTION_DAYS be at least twice AFTERCALL_NIGHTLY_EVERY_H"
        )
