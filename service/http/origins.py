"""Which web pages may speak to an endpoint: none but those under the service's own names.

A browser says in the Origin header whose page a request comes from; other programs send none. MCP
asks its servers to refuse foreign ones: what a page learns here, its server learns.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from service.http.host_guard import ANY_HOST
from service.http.problems import ProblemError


def refuse_foreign_origin(origin: str | None, hosts: Collection[str]) -> None:
    """Let pass what comes from no page, or from a page under one of `hosts`, on whatever port.

    Args:
        origin: the Origin header; None when there is none.
        hosts: host names, lower case. `*` stands for none here: under a name that anybody may
            choose, a page of anybody's could be.

    Raises:
        ProblemError: 403 for any other page, a sandboxed one (`null`) too.
    """
    if origin is None:
        return
    try:
        parts = urlsplit(origin)
        host = parts.hostname or ""
    except ValueError:  # half an IPv6 address
        host = ""
    if not host or host == ANY_HOST or host not in hosts:
        raise ProblemError(
            403,
            "origin_not_allowed",
            "this endpoint does not answer to that web page; name the page's host in "
            "AFTERCALL_SERVER_ALLOWED_HOSTS, or send no Origin header from a program",
        )
