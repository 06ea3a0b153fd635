"""Notebooks as they are kept: without outputs, traces of a machine, or surprises."""

import json
import re

import nbformat
import pytest

from notebooks.render import cells_hash
from tests.notebooks.executing import FOLDER, NAMES

_MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|work|mnt)/|[A-Z]:\\\\")


def test_all_notebooks_are_tested() -> None:
    """A notebook that is added here is added to the tests."""
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_no_output_and_no_count_is_kept(name: str) -> None:
    """Outputs say what one machine saw once; the kernel is named as every installation names it."""
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in code] == [[]] * len(code)
    assert {cell.execution_count for cell in code} == {None}
    assert {json.dumps(cell.metadata) for cell in notebook.cells} == {"{}"}
    assert not _MACHINE.search(text)
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


@pytest.mark.parametrize("name", NAMES)
def test_its_page_is_current_small_and_of_no_machine(name: str) -> None:
    """`python -m notebooks.render` makes it; by the hash of the cells it was made from."""
    page = (FOLDER / "html" / f"{name}.html").read_text(encoding="utf-8")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert f'<meta name="cells" content="{cells_hash(notebook)}">' in page
    assert len(page) < 400_000
    assert "<script" not in page
    assert not _MACHINE.search(page)
    assert "<table" in page
    assert "image/png;base64" in page


def test_the_readme_names_each() -> None:
    """Nobody has to open a notebook to know what it is about."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.ipynb)" in readme and f"(html/{name}.html)" in readme for name in NAMES)
