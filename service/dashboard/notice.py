"""A page for when there is no page: plain HTML without scripts, under the status that it says."""

from html import escape

from starlette.responses import HTMLResponse

from service.errors import ProblemError, safe_message

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:12vh auto;padding:0 1rem}
"""


def notice(problem: ProblemError) -> HTMLResponse:
    """What a person sees in the place of a page; it is loaded again when the problem says so."""
    again = (problem.headers or {}).get("retry-after")
    refresh = f'<meta http-equiv="refresh" content="{escape(again)}">' if again else ""
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>Aftercall</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>Aftercall</h1><p>{escape(safe_message(problem.message)).capitalize()}.</p>"
        "</main></body></html>"
    )
    headers = {**(problem.headers or {}), "cache-control": "no-store"}
    return HTMLResponse(page, status_code=problem.status_code, headers=headers)
