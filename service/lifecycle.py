"""Where the process is between its start and its end."""

from dataclasses import dataclass

from service.container import Services


@dataclass(slots=True)
class Lifecycle:
    """The app listens before its services are open, so that `/healthz` can say it lives.

    `phase` completes the sentence "the service is ...".
    """

    services: Services | None = None
    phase: str = "starting"
