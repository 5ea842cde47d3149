"""What the texts of several published judges have in common."""

from __future__ import annotations

RUBRIC = (
    "[How well does the response serve the person who asked?]\n"
    "Score 1: It is wrong, harmful or beside the point.\nScore 2: Little of it can be used.\n"
    "Score 3: It helps in part, with errors or gaps that matter.\nScore 4: It is right and helpful, with small faults.\n"
    "Score 5: It is right, complete, clear and harmless."
)
"""What is judged where a row brings no rubric of its own."""
VALUED = "Think of helpfulness, relevance, accuracy, depth, creativity and the right amount of detail."
