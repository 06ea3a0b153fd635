"""What a page of the dashboard may do, and which pages may open its socket."""

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from service.errors import ProblemError
from service.middleware import ANY_HOST, hosts_to_answer
from service.settings import ServerSettings

_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def guarded_headers(host: str) -> dict[str, str]:
    """Headers of every answer: nothing is loaded from elsewhere, and nobody may frame a page.

    Scripts stand in the page and Vue compiles templates, so both are allowed; what tools said never
    becomes either, because it is only ever text.

    Args:
        host: the Host header, whatever the caller made it.
    """
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    return {
        "content-security-policy": (
            "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
            "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
            f"connect-src 'self'{sockets}; object-src 'none'; "
            "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-frame-options": "DENY",
    }


def own_hosts(settings: ServerSettings) -> frozenset[str]:
    """Names with port, lower case, under which people reach the service through a proxy.

    What a request names in its Host header is its own besides; the host guard has let it pass.
    """
    public = urlsplit(settings.public_url or "").netloc.lower()
    named = hosts_to_answer(settings.host, settings.allowed_hosts) - {ANY_HOST}
    configured = named if settings.allowed_hosts else frozenset[str]()
    return configured | ({public} if public else frozenset())


def refuse_embedding(site: str | None, destination: str | None) -> None:
    """Let other sites lead to the dashboard, and nothing else.

    Each page that is built is kept for a while, so pictures and frames of another site that name
    one would fill the memory, and keep out who wants to look.

    Args:
        site: the Sec-Fetch-Site header; None from programs, and from browsers under plain HTTP at
            another name than localhost.
        destination: the Sec-Fetch-Dest header.

    Raises:
        ProblemError: 403 for what another site embeds.
    """
    if site == "cross-site" and destination != "document":
        raise ProblemError(
            403, "embedding_not_allowed", "other sites may link to the dashboard, not embed it"
        )


def refuse_other_origin(origin: str | None, host: str, own: Collection[str]) -> None:
    """Let pass what comes from no page, or from a page of this very service.

    Args:
        origin: the Origin header; None when there is none, as programs send it.
        host: the Host header of the same request.
        own: further names of the service, with or without a port.

    Raises:
        ProblemError: 403 for any other page, one at another port of this machine too.
    """
    if origin is None:
        return
    try:
        parts = urlsplit(origin)
        netloc, name = parts.netloc.lower(), (parts.hostname or "")
    except ValueError:  # half an IPv6 address
        netloc, name, parts = "", "", urlsplit("")
    bare = netloc.removesuffix(_DEFAULT_PORTS.get(parts.scheme, "-"))
    if bare and (bare in {host.lower(), *own} or netloc == host.lower() or name in own):
        return
    raise ProblemError(
        403,
        "origin_not_allowed",
        "the dashboard's socket does not answer to that web page; behind a proxy, name the address "
        "that people use in AFTERCALL_SERVER_PUBLIC_URL",
    )
