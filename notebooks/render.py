"""Notebooks as pages with their outputs: `python -m notebooks.render [NAME ...]`.

Each notebook is run in a kernel of its own, as `tests/notebooks` does, and written to `html/`
next to it: one file without scripts, whose plots are inside it. A page holds the hash of the cells
that it was made from, so that a test can say whether it is current without running them.
"""

import argparse
import base64
import hashlib
import io
import os
from html import escape
from pathlib import Path
from typing import Final

import nbformat
from nbformat import NotebookNode

FOLDER: Final = Path(__file__).parent
PAGES: Final = FOLDER / "html"
_CELL_S: Final = 600
_PAGE: Final = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="cells" content="{cells}"><title>{name}</title><style>
body{{font:16px/1.55 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}}
pre{{background:#f3f5f7;padding:.7rem;overflow:auto;border-radius:6px;font:13px/1.45 monospace}}
.jp-OutputArea pre{{background:none;padding:.2rem .7rem}} img{{max-width:100%}}
.jp-InputPrompt,.jp-OutputPrompt,.jp-Collapser,.anchor-link{{display:none}}
table{{border-collapse:collapse;font-size:.9rem;display:block;overflow-x:auto}}
th,td{{border-bottom:1px solid #d3dae1}} .k,.kn,.ow{{color:#1f5f8b}} .s1,.s2,.sd{{color:#1d6b3a}}
.c1{{color:#55606c}}
</style></head><body>
<p><a href="../README.md">All notebooks</a> · run on {day}</p>
{body}
</body></html>
"""


def cells_hash(notebook: NotebookNode) -> str:
    """SHA-256 of the cells' kinds and sources, in hex."""
    cells = "\x1e".join(f"{each.cell_type}\x1f{each.source}" for each in notebook.cells)
    return hashlib.sha256(cells.encode()).hexdigest()


def render(name: str) -> Path:
    """Run a notebook, and write its page.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
        ValueError: an output names a folder of this machine.
    """
    from datetime import UTC, datetime  # noqa: PLC0415  # below: of the extra `notebooks`

    from nbclient import NotebookClient  # noqa: PLC0415
    from nbconvert import HTMLExporter  # noqa: PLC0415

    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    cells = cells_hash(notebook)
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=_CELL_S, resources=resources).execute()
    for output in (each for cell in notebook.cells for each in cell.get("outputs", [])):
        if picture := output.get("data", {}).get("image/png"):
            output.data["image/png"] = _small(picture)
    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, sanitize_html=False)
    body, _ = exporter.from_notebook_node(notebook)
    if str(Path.home()) in body or str(FOLDER.parent) in body or "/tmp/" in body:  # noqa: S108
        raise ValueError(f"an output of {name} names a folder of this machine")
    PAGES.mkdir(exist_ok=True)
    page = PAGES / f"{name}.html"
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    page.write_text(_PAGE.format(cells=cells, name=escape(name), day=day, body=body), "utf-8")
    return page


def _small(picture: str) -> str:
    """Return a plot, in base64, with 64 colours."""
    from PIL import Image  # noqa: PLC0415  # Matplotlib brings it

    out = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as plot:
        plot.convert("RGB").quantize(64).save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def main() -> None:
    """Read the options, and render."""
    parser = argparse.ArgumentParser(description="run notebooks, and write them as HTML")
    parser.add_argument("names", nargs="*", help="such as similar_successes; all if left out")
    names = parser.parse_args().names or sorted(each.stem for each in FOLDER.glob("*.ipynb"))
    os.environ.pop("AFTERCALL_URL", None)  # of a service of one's own
    for name in names:
        page = render(name)
        print(f"{page.relative_to(FOLDER.parent)}: {page.stat().st_size / 1024:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
