"""Pictures of every page of the dashboard, at three widths, in light and dark.

    python -m bench.screenshots [--into docs/figures/dashboard] [--only overview] [--url URL]

Starts a service of its own, plays the made-up history of `aftercall demo --history` into it (or
takes the service at URL as it is), and looks at each page in Debian's Chromium. Pictures have 64
colours, to keep them small. They are for looking at: what the pages say is tested in
`tests/browser/`.
"""

import argparse
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

import httpx2
from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures" / "dashboard"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WIDTHS = (390, 1280, 1920)
THEMES = ("light", "dark")
COLOURS = 64
MAX_HEIGHT = 2_600
"""Pixels; what is longer is cut, and repeats itself."""

SETTLED_MS = 200
"""Until tables and charts stand where they stay."""


@contextmanager
def full_service() -> Iterator[str]:
    """The address of a service that holds the made-up history."""
    command = [sys.executable, "-m", "aftercall.cli", "demo", "--history"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if "/dashboard" in line:
                    start = line.index("http://")
                    yield line[start:].split("/dashboard")[0]
                    break
            else:
                raise RuntimeError("the demo's service did not come up")
        finally:
            process.terminate()


def pages(url: str) -> dict[str, str]:
    """Paths of the pages by the names of their pictures."""
    with httpx2.Client(base_url=url, timeout=60) as client:
        while not client.get("/stats/totals").json()["windows"][0]["isComplete"]:
            time.sleep(0.2)
        patterns = client.get("/stats/patterns", params={"window": "30d"}).json()["patterns"]
        agents = client.get("/stats/usage", params={"window": "30d"}).json()["byAgent"]
        boundaries = client.get("/boundaries").json()["tools"]
        tools = client.get("/stats/tools", params={"window": "30d"}).json()["tools"]
        pages = client.get("/dashboard/sessions").text
    session = unquote(re.findall(r"/dashboard/sessions/([^?\"#&]+)", pages)[0])
    named = [each["tool"] for each in boundaries] + [each["tool"] for each in tools]
    tool = next(each["toolId"] for each in named if each["toolId"])
    return {
        "overview": "/",
        "failures": "/failures",
        "pattern": f"/patterns/{quote(patterns[0]['pattern']['patternId'], safe='')}",
        "tools": "/tools",
        "tool": f"/tools/{quote(tool, safe='')}",
        "recommendations": "/recommendations",
        "sessions": "/sessions",
        "session": f"/sessions/{quote(session, safe='')}",
        "keys": "/keys",
        "agents": "/agents",
        "agent": f"/agents/{quote(agents[0]['agent'], safe='')}",
        "boundaries": "/boundaries",
        "suggestions": "/suggestions",
        "criteria": "/criteria",
        "try": "/try",
    }


def take(page: Page, file: Path) -> None:
    """One picture, from the top."""
    height = min(int(page.evaluate("document.documentElement.scrollHeight")), MAX_HEIGHT)
    width = page.viewport_size["width"] if page.viewport_size else WIDTHS[-1]
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(SETTLED_MS)
    picture = Image.open(io.BytesIO(page.screenshot()))
    few = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
    few.save(file, optimize=True)


def take_all(url: str, into: Path, only: Sequence[str]) -> None:
    """All pictures."""
    into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for name, path in pages(url).items():
            if only and name not in only:
                continue
            for theme in THEMES:
                for width in WIDTHS:
                    context = browser.new_context(
                        viewport={"width": width, "height": 800},
                        color_scheme="dark" if theme == "dark" else "light",
                        reduced_motion="reduce",
                    )
                    page = context.new_page()
                    page.goto(f"{url}/dashboard{path}?window=30d", wait_until="load")
                    file = into / f"{name}-{width}-{theme}.png"
                    take(page, file)
                    print(f"{file.name}: {file.stat().st_size / 1024:.0f} kB", flush=True)
                    context.close()
        browser.close()


def main() -> None:
    """Read the options, and take them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=FIGURES)
    parser.add_argument(
        "--only", action="append", default=[], help="a page's name; may be given again"
    )
    parser.add_argument("--url", help="a running service; else one with the demo's history")
    options = parser.parse_args()
    if options.url:
        take_all(options.url, options.into, options.only)
        return
    with full_service() as url:
        take_all(url, options.into, options.only)


if __name__ == "__main__":
    main()
