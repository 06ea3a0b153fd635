"""Referrals for the story: tools say that a request is not their job, one of them hostile words."""

import httpx2

from tests.browser.story import HOSTILE_TOOL, IMAGE, SCRIPT, Teller

AXES = (
    ("page_reader", ["transport", "extraction"], 6),
    ("page_reader", ["HTTP transport", "extraction"], 3),
    ("mail_sender", ["delivery", "formatting"], 4),
    ("report_maker", ["formatting", "charting"], 2),
    ("report_maker", ["charting", "extraction"], 1),
    (HOSTILE_TOOL, [f"axis {SCRIPT}", f"other {IMAGE}"], 4),
)


def tell_referrals(url: str) -> None:
    """Record them, and wait until they are learned."""
    with httpx2.Client(base_url=url, timeout=30) as client:
        teller = Teller(client)
        for tool, axes, times in AXES:
            for number in range(times):
                teller.call(
                    tool,
                    hours_ago=1 + 5 * number,
                    serverName="web",
                    parameters={"url": f"https://example.org/{number}"},
                    error={
                        "type": "wrong_tool_boundary",
                        "message": f"that is more than {tool} does",
                        "details": {
                            "boundaryAxes": axes,
                            "observedTaskShape": " + ".join(axes),
                            "suggestedSplit": axes,
                            "evidence": f"asked for {axes[0]} and {axes[1]} at once",
                        },
                    },
                )
        teller.send()
