"""Whether the claims of methods hold: paired runs, confidence intervals, verdicts, and the pages that show them."""
