"""What is claimed of every page, held against every page; what one alone claims is beside it.

Wherever a page is about something that has a name, it is shown about what has a hostile one.
"""

from collections.abc import Iterator
from urllib.parse import quote, urlencode

import httpx2
import pytest
from playwright.sync_api import Page, expect

from service.dashboard.routes import PAGES
from tests.browser.reading import Faults, grave_findings
from tests.browser.story import (
    HOSTILE_AGENT,
    HOSTILE_FAILURE,
    HOSTILE_SERVER,
    HOSTILE_TOOL,
    IMAGE,
    SCRIPT,
    Teller,
    tell_mending,
    tell_referrals,
)
from tests.service.running_service import ServeProcess, eventually

pytestmark = pytest.mark.real

PATHS = [page.path for page in PAGES]

LIVE = [path for path in PATHS if path not in ("/try", "/keys", "/recommendations")]
"""All but those that show what their reader asked for, or what a few calls change nothing of."""

HOSTILE_ID = f"evil/{IMAGE}"
"""Of a tool that is registered, with such words in its other fields too."""


@pytest.fixture(scope="module", autouse=True)
def told(story: ServeProcess) -> None:
    """Referrals, repairs, and a registered tool with hostile words in all its fields."""
    tell_referrals(story.url)
    tell_mending(story.url)
    tool = {
        "serverName": HOSTILE_SERVER,
        "name": HOSTILE_TOOL,
        "description": f"{SCRIPT} {IMAGE} {{{{7*7}}}}",
        "tags": [IMAGE],
        "inputSchema": {
            "type": "object",
            "properties": {IMAGE: {"type": "string", "description": SCRIPT, "enum": [SCRIPT]}},
        },
    }
    answer = httpx2.put(f"{story.url}/tools/{quote(HOSTILE_ID, safe='')}", json=tool)
    answer.raise_for_status()


@pytest.fixture(scope="module")
def addresses(story: ServeProcess) -> dict[str, str]:
    """An address of each kind of page, by the path of its kind."""
    patterns = story.get("/patterns?limit=500")["patterns"]
    [hostile] = [
        each["patternId"]
        for each in patterns
        if each["tool"]["toolName"] == HOSTILE_TOOL and "onerror" in each["signature"]
    ]
    about = {
        "/patterns/{pattern_id}": f"/patterns/{hostile}",
        "/tools/{tool_id:path}": f"/tools/{quote(HOSTILE_ID)}",
        "/tool": f"/tool?{urlencode({'server': HOSTILE_SERVER, 'name': HOSTILE_TOOL})}",
        "/agents/{agent:path}": f"/agents/{quote(HOSTILE_AGENT)}",
        "/sessions/{session:path}": f"/sessions/-?{urlencode({'at': chr(31) + HOSTILE_AGENT})}",
    }
    return {path: f"/dashboard{about.get(path, path)}" for path in PATHS}


def asking(address: str, **query: str) -> str:
    """The address with further parameters."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


def opened(page: Page, address: str) -> None:
    """Load a page, wait until it is there, and open all that can be opened."""
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 200
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


OF_COLOURS = ("color-contrast", "link-in-text-block")
"""Rules of axe that another theme can break."""
TRACES = "https://traces.example.org/"
BROKEN_HEADERS = """() => [...document.querySelectorAll('thead th')].flatMap((each) => {
  const walker = document.createTreeWalker(each, NodeFilter.SHOW_TEXT), broken = [];
  for (let text; (text = walker.nextNode()); )
    for (const word of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (range.getClientRects().length > 1) broken.push(word[0]);
    }
  return broken;
})"""
"""Words of headers that do not stand in one line."""
UNMARKED = """() => [...document.querySelectorAll('data-table .scroll')].filter((each) =>
  each.checkVisibility() && (each.scrollWidth > each.clientWidth + 1) !==
  (each.parentElement.querySelector('.sideways').checkVisibility())
).map((each) => each.getAttribute('aria-label'))"""
"""Tables that scroll and do not say so, or say so and do not."""


def fits(page: Page, width: int) -> None:
    """One main heading, which is the title; nobody scrolls sideways.

    No word of a table's head is broken, and a table that scrolls says so.
    """
    page.set_viewport_size({"width": width, "height": 900})
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_count(1)
    expect(page).to_have_title(f"{heading.inner_text()} - Aftercall")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BROKEN_HEADERS) == []
    eventually(lambda: page.evaluate(UNMARKED) == [], 20)  # they are marked a frame later


SAID = {
    "/": HOSTILE_TOOL,
    "/failures": f"{SCRIPT} {IMAGE}",  # the context of a call
    "/patterns/{pattern_id}": f"{SCRIPT} {IMAGE}",
    "/tools": HOSTILE_TOOL,
    "/tools/{tool_id:path}": f"{SCRIPT} {IMAGE}",  # the description
    "/tool": HOSTILE_TOOL,
    "/agents": HOSTILE_AGENT,
    "/agents/{agent:path}": HOSTILE_AGENT,
    "/boundaries": f"axis {SCRIPT}",
    "/sessions": HOSTILE_AGENT,
    "/sessions/{session:path}": f"{SCRIPT} {IMAGE}",
}
"""What a page quotes; *Suggestions* quotes nothing, and *Try it* what its reader types."""


@pytest.fixture(scope="module")
def client(story: ServeProcess) -> Iterator[httpx2.Client]:
    """Who asks without a browser."""
    with httpx2.Client(base_url=story.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def answered() -> dict[str, int]:
    """Statuses of the links that were followed already."""
    return {}


@pytest.mark.parametrize("path", PATHS)
def test_it_fits_is_accessible_quotes_as_text_and_leads_somewhere(
    page: Page,
    addresses: dict[str, str],
    answered: dict[str, int],
    client: httpx2.Client,
    path: str,
) -> None:
    """At every width, with everything open that can be opened; the browser says nothing.

    axe finds nothing grave, in both themes, which differ in their colours. What tools and agents
    said stands there letter by letter, with no element or template made of it; `page` fails if any
    is run. Links lead to something of this service that is there, or to where its owner looks at
    traces.
    """
    for loaded, wider in ((390, 768), (1280, 1920)):  # the others as a window is made wider
        page.set_viewport_size({"width": loaded, "height": 900})
        opened(page, asking(addresses[path], window="7d"))
        fits(page, loaded)
        fits(page, wider)
    page.set_viewport_size({"width": 1280, "height": 900})
    assert grave_findings(page) == []
    page.emulate_media(color_scheme="dark")
    assert grave_findings(page, *OF_COLOURS) == []

    assert page.locator("main img, main script, main iframe, main b").count() == 0
    shown = page.locator("main").text_content() or ""
    assert SAID.get(path, "") in shown
    assert "49 $" not in shown  # of `{{7*7}} ${7*7}`

    found = page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
    links = [each for each in found if not each.startswith(TRACES)]
    assert len(links) >= 10
    for each in sorted({link.partition("#")[0] for link in links} - set(answered)):
        assert each.startswith(str(client.base_url))
        answered[each] = client.get(each).status_code
    assert {link: status for link, status in answered.items() if status != 200} == {}


@pytest.mark.parametrize(("name", "what"), [("workspace", "workspace"), ("window", "time range")])
def test_what_is_unknown_is_told_and_not_replaced(
    page: Page,
    faults: Faults,
    addresses: dict[str, str],
    client: httpx2.Client,
    name: str,
    what: str,
) -> None:
    """On no page: figures of another one than was asked for would be believed."""
    faults.allow("404")
    asked = [asking(address, **{name: IMAGE}) for address in addresses.values()]
    answers = [client.get(each) for each in asked]
    assert {each.status_code for each in answers} == {404}
    assert len({each.text.partition("<main")[2] for each in answers}) == 1  # they all say this:
    page.goto(asked[0])
    expect(page.get_by_text(f"There is no {what}")).to_contain_text(IMAGE)
    expect(page.get_by_role("link", name="To the overview")).to_be_visible()
    expect(page.locator("main .card")).to_have_count(0)


@pytest.fixture
def teller(client: httpx2.Client) -> Teller:
    """Who records more calls."""
    return Teller(client)


@pytest.mark.parametrize("path", LIVE)
def test_it_follows_what_is_recorded(
    page: Page, addresses: dict[str, str], teller: Teller, path: str
) -> None:
    """A success, a failure and a referral change every page, without loading it again."""
    opened(page, addresses[path])
    page.evaluate("window.here = true")
    before = page.locator("main").inner_text()
    teller.call(HOSTILE_TOOL, agent=HOSTILE_AGENT, serverName=HOSTILE_SERVER)
    teller.call(HOSTILE_TOOL, **HOSTILE_FAILURE)
    referral = {
        "type": "wrong_tool_boundary",
        "message": "that is another one's job",
        "details": {"boundaryAxes": ["transport", "extraction"], "evidence": "both at once"},
    }
    teller.call(HOSTILE_TOOL, **{**HOSTILE_FAILURE, "error": referral})
    teller.send()
    page.wait_for_function(
        "before => document.querySelector('main').innerText !== before", arg=before
    )
    assert page.evaluate("window.here") is True


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("agents/planer%20%3Cb%3E", ("There is no agent 'planer <b>'", "planner")),
        ("patterns/%3Cb%3Enope", ("There is no failure pattern '<b>nope'.",)),
        ("sessions?since=soon", ("'soon' is no time.",)),
        ("?from=2026-11-07&to=2026-11-01", ("The first day comes before the last",)),
        (quote(IMAGE, safe=""), ()),
        ("nowhere/%7B%7B7*7%7D%7D/x/y", ()),
    ],
)
def test_what_nobody_knows_gets_a_clear_page(
    page: Page, faults: Faults, path: str, words: tuple[str, ...]
) -> None:
    """With what may have been meant, and without a word of an address that is none."""
    faults.allow("404")
    answer = page.goto(f"/dashboard/{path}")
    assert answer is not None
    assert answer.status == 404
    for each in (*words, "To the overview"):
        expect(page.get_by_role("main")).to_contain_text(each)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", ("No call was recorded yet.", "aftercall demo --history")),
        ("/failures", ("No failure in this window.", "aftercall demo --history")),
        ("/tools", ("No tool was called or registered yet.", "aftercall demo --history")),
        ("/agents", ("No agent called a tool in this window.", "aftercall demo --history")),
        ("/recommendations", ("Nothing is recommended.", "Descriptions to mend")),
        ("/sessions", ("No call is stored.", "aftercall demo --history")),
        ("/keys", ("There are no keys", "aftercall keys create NAME")),
        ("/boundaries", ("No tool has referred a request elsewhere yet.", "wrong_tool_boundary")),
        ("/suggestions", ("Nothing was asked in this window.", "aftercall demo --history")),
    ],
)
def test_an_empty_page_says_what_to_do(empty_page: Page, path: str, words: tuple[str, ...]) -> None:
    """And is as accessible as a full one, in both themes."""
    empty_page.emulate_media(color_scheme="light")
    empty_page.goto(f"/dashboard{path}")
    for each in words:
        expect(empty_page.get_by_role("main")).to_contain_text(each)
    assert grave_findings(empty_page) == []
    empty_page.emulate_media(color_scheme="dark")
    assert grave_findings(empty_page, *OF_COLOURS) == []
