r"""Published forms of judges, by name: what each asks, in which sections, and the marks with which it answers.

The words are ours; the task, the order and names of the sections, and the marks are those of the source, so that its readers
and the judges trained with it understand them. A judge that was trained on one text does best with that very text: `NAME:FILE`
takes the prompt from a file and everything else from the form (`named.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from rewardlab.judges.forms import Form
from rewardlab.judges.published.lists import LISTS
from rewardlab.judges.published.pairs import PAIRS
from rewardlab.judges.published.single import SINGLE

FORMS: Mapping[str, Form] = {form.name: form for form in (*PAIRS, *SINGLE, *LISTS)}
