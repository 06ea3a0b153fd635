"""What the app counts of itself, from its start on: requests, and which build it is."""

import platform

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, ProcessCollector

from service.version import VERSION

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""There is a histogram per route, so it has few buckets."""

_NO_ANSWER = "none"
"""The status of a request whose sender went away before it was answered."""


class RequestMetrics:
    """Requests by method, route and status, in a registry of its own: no two apps clash."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "aftercall_http_requests",
            "Requests that were answered, by method, template of the route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._durations = Histogram(
            "aftercall_http_request_duration_seconds",
            "Seconds from the head of a request to the end of its answer.",
            ["method", "route"],
            buckets=_BOUNDS_S,
            registry=self.registry,
        )
        build = Info("aftercall_build", "The running build.", registry=self.registry)
        build.info({"version": VERSION, "python": platform.python_version()})
        ProcessCollector(registry=self.registry)  # only where there is a /proc

    def observe(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: as it was sent; an unusual one is `other`.
            route: the template, never the path, which may be anything; None for no such route.
            status: of the answer; 0 when there was none.
            seconds: how long it took.
        """
        method = method if method in _METHODS else "other"
        route = route or "unknown"
        self._requests.labels(method, route, str(status) if status else _NO_ANSWER).inc()
        self._durations.labels(method, route).observe(seconds)
