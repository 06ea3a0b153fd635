"""Executing a notebook as a reader would, with nothing written outside the test's folder."""

from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbmake.nb_run import NotebookRun

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = (
    "similar_successes",
    "confidence_and_calibration",
    "fitness_and_regret",
    "boundary_axes_and_cohesion",
    "recorded_session",
    "your_own_proposer",
)

LONG = "fitness_and_regret"
"""It plays many worlds, for more than a minute."""
READING = NAMES[:4]
"""Those that look at a running service; the others keep to one of their own."""
_CELL_S = 300
"""Longest time of one cell: for a machine that is busy with other tests, not a claim."""


def execute(name: str, folder: Path, patch: pytest.MonkeyPatch, **environ: str) -> NotebookNode:
    """Run all cells of a notebook in a kernel of its own; the notebook with its outputs.

    Args:
        name: of the notebook, without its ending.
        folder: for what Jupyter, IPython and matplotlib write.
        patch: sets the environment that the kernel gets.
        environ: what else is in it.

    Raises:
        pytest.fail.Exception: a cell failed; with its traceback.
    """
    for variable in ("AFTERCALL_URL", "MPLBACKEND"):
        patch.delenv(variable, raising=False)
    for variable, place in {
        "JUPYTER_CONFIG_DIR": "jupyter/config",
        "JUPYTER_DATA_DIR": "jupyter/data",
        "JUPYTER_RUNTIME_DIR": "jupyter/runtime",
        "IPYTHONDIR": "ipython",
        "MPLCONFIGDIR": "matplotlib",
    }.items():
        patch.setenv(variable, str(folder / place))
    for variable, value in environ.items():
        patch.setenv(variable, value)
    result = NotebookRun(FOLDER / f"{name}.ipynb", _CELL_S).execute()
    if result.error is not None:
        pytest.fail(result.error.trace)
    return result.nb


def images(notebook: NotebookNode) -> int:
    """How many plots its outputs hold."""
    return sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )


def complaints(notebook: NotebookNode) -> list[str]:
    """What cells wrote to stderr: warnings, mostly."""
    return [
        output["text"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream" and output["name"] == "stderr"
    ]
