"""Results as pictures: each function takes what statistics returned and an Axes, draws, and gives the Axes back.

A notebook shows an Axes as a line of text and its figure as a picture: `jm.plots.summary(results).figure`.

Nothing is computed here. Names are other people's text: cut where they are long, and drawn with whichever installed font
has their letters; a letter that none has is shown by its code. Pictures are readable in black and white: marks differ in
shape, not in colour alone.
"""

from __future__ import annotations

from jurimetrics.plots.compared import differences, pareto
from jurimetrics.plots.judged import agreement, confusion, judge_human, reliability
from jurimetrics.plots.panels import effects, frontier, judge_judge
from jurimetrics.plots.scored import scores, similarity_matrix, summary

__all__ = [
    "agreement",
    "confusion",
    "differences",
    "effects",
    "frontier",
    "judge_human",
    "judge_judge",
    "pareto",
    "reliability",
    "scores",
    "similarity_matrix",
    "summary",
]
