"""The verifier of texts with masked spans."""

from __future__ import annotations

import re
from typing import Any

from rewardlab.text import words
from rewardlab.text.replies import LONGEST, marked

from .contract import Verdict, differs, no_verdict, right, verifier, wrong


@verifier
def filled_masks(response: str, answer: Any) -> Verdict:
    """Right if the reply states the text behind each mask, in order: `Answer: Ada Lovelace; 1833`. Otherwise it is worth the share
    of masks filled rightly, and nothing if it states more spans than there are masks.

    answer: the list of what is hidden. Case, punctuation and articles do not count; numbers must be written alike.
    """
    golds = [words.normalised(str(span)) for span in answer] if isinstance(answer, list | tuple) else []
    if not golds or not all(golds):
        return no_verdict(f"the gold answer {str(answer)[:60]!r} is no list of what is hidden")
    stated = marked(response)
    if not stated or len(stated) > LONGEST:
        return wrong("no answer found", value=0.0)
    said = [words.normalised(part) for part in re.split(r"[;\n]", stated.strip())]
    if len(said) > len(golds):
        return wrong(f"states {len(said)} spans for {len(golds)} masks", stated, value=0.0)
    share = sum(a == b for a, b in zip(said, golds, strict=False)) / len(golds)
    return right(stated) if share == 1.0 else wrong(differs(stated, "; ".join(map(str, answer))), stated, value=share)
