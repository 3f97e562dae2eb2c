"""Pictures of `plots` inside the page: as PNG they need no file beside it, and no text in them can become markup."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import TYPE_CHECKING

from jurimetrics.report.markup import Markup, put

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 150
"""Sharp on paper and on a phone, at about 40 kB for a picture."""


def picture(axes: Axes, alt: str) -> Markup:
    """The figure of `axes` with its alternative text, a fixed one that names nothing out of data."""
    file = BytesIO()
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.savefig(file, format="png", dpi=_DPI)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    # Pixels of a page, 96 to an inch: letters are then about as large as those of the text.
    width, height = (round(96 * inches) for inches in figure.get_size_inches())
    return Markup(
        f'<div class="jr-figure" tabindex="0" role="region" aria-label="Figure">'
        f'<img alt="{put(alt)}" width="{width}" height="{height}" src="data:image/png;base64,{data}"></div>'
    )
