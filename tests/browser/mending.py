"""More for the story: failures that agents mended by themselves, and one name on two servers."""

import httpx2

from tests.browser.story import Teller, too_many

TWIN = "twin_tool"

NEVER_CALLED = "library/never_called"


def tell_mending(url: str) -> None:
    """Record them, and wait until they are learned."""
    with httpx2.Client(base_url=url, timeout=30) as client:
        client.put(
            f"/tools/{NEVER_CALLED.replace('/', '%2F')}",
            json={"serverName": "library", "name": "never_called", "version": "1.2.0"},
        ).raise_for_status()
        teller = Teller(client)
        for number in range(4):
            session = f"mended-{number}"
            asked = {"query": f"topic {number}"}
            teller.call(
                "search",
                hours_ago=2.0 + number,
                agent=("librarian", "mailer")[number % 2],
                sessionId=session,
                context="find what there is on reflection",
                parameters={**asked, "topK": 90},
                error=too_many(),
            )
            teller.call(
                "search",
                hours_ago=1.99 + number,
                agent=("librarian", "mailer")[number % 2],
                sessionId=session,
                parameters={**asked, "topK": 10},
                attempt=2,
            )
        for server in ("east", "west"):
            teller.call(TWIN, serverName=server)
        teller.send()
