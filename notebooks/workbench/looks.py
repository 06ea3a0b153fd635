"""How the plots look: colours that colour-blind readers show apart, on white, with quiet axes."""

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#007A5A"
PURPLE = "#AA4499"
YELLOW = "#E69F00"
SKY = "#56B4E9"
BLACK = "#222222"
GREY = "#767676"
"""After Okabe and Ito 2008 ("Color Universal Design"); green and purple are darker, so that a thin
line of any of them but yellow and sky has a contrast of 4.5 : 1 on white."""

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, BLACK, GREY)
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))
"""Lines differ by form too, so that nothing is shown by colour alone."""


def use_looks() -> None:
    """Let the plots of this process look so."""
    plt.rcParams.update(
        {
            "figure.figsize": (7.6, 4.2),
            "figure.dpi": 100,
            "figure.facecolor": "white",
            "axes.facecolor": "white",
            "axes.prop_cycle": cycler(color=COLOURS) + cycler(linestyle=DASHES),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": GREY,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.titlelocation": "left",
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "grid.color": "#E4E4E4",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "font.family": "DejaVu Sans",
            "text.parse_math": False,  # a dollar in a tool's name is a dollar
        }
    )


def plot(
    title: str, x: str, y: str, *, columns: int = 1, height: float = 4.2
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of some panels side by side; the first has the title.

    Args:
        title: of the first panel.
        x: what its horizontal axis shows, with the unit.
        y: the same of the vertical one.
        columns: panels.
        height: inches.
    """
    figure, axes = plt.subplots(
        1, columns, figsize=(7.6 if columns == 1 else 4.6 * columns, height), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    panels = list(axes[0])
    label(panels[0], title, x, y)
    return figure, panels


def label(panel: Axes, title: str, x: str, y: str) -> None:
    """Say what a panel shows."""
    panel.set_title(title)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
