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
    axes.get_figure(root=True).savefig(file, format="png", dpi=_DPI)  # type: ignore[union-attr]
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return Markup(
        f'<div class="jr-figure" tabindex="0" role="region" aria-label="Figure">'
        f'<img alt="{put(alt)}" src="data:image/png;base64,{data}"></div>'
    )
