"""Reasoning-Table: a right answer about a table earns more, the better the cited cells match the required ones.

    r = right (1 + 1/2 Jaccard(cells cited, cells to read)) + 1/10 form
    a cell is cited as <|value|><|column|>

In small tables many a wrong cell gives the right answer, and a statement is true or false by chance. Cells are paid only behind a
right answer: citing alone earns nothing. One policy learns all kinds of table tasks, each judged by its own verifier.

Lei et al. 2025, arXiv:2506.01710; reward and form of citation are the released code's (MJinXiang/Reasoning-Table, 0625cac,
verl/utils/reward_score/table_evidence), as are n = 5, a KL of 0.001, eight updates of a batch and the mean over tokens
(train_grpo_7b.sh). Without `form` a reply should state an answer; there it is <think> and <answer>, the answer not empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.format import answer_given, format_ok
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct

# ---- Whether a reply cites the cells of a table that it should have read ---------------------------------------------

_CITED = re.compile(r"<\|(.*?)\|><\|(.*?)\|>")


@reward
def cited_cells(trajectory: Trajectory, *, column: str = "evidence") -> Score:
    """The Jaccard similarity of the cells that a reply cites, <|value|><|column|>, and those of a column of the problem.

    That holds a list of {"value", "column"}, or its JSON. 0 where a problem has no such column, so that tables with and without can
    be mixed; no verdict where it holds something else. A cell counts once, however often it is cited.
    """
    given = trajectory.problem.meta.get(column)
    if given is None:
        return Score(0.0, why=f"the problem has no column {column!r}")
    listed = list_of(given)
    if listed is None or not all(isinstance(c, Mapping) and {"value", "column"} <= c.keys() for c in listed):
        return Score(None, why=f"the column {column!r} is no list of {{'value', 'column'}}")
    wanted = {(str(c["value"]), str(c["column"])) for c in listed}
    cited = set(_CITED.findall(trajectory.reply))
    shared, all_cells = len(cited & wanted), len(cited | wanted)
    # as the released code has it: nothing cited where nothing should be is worth nothing
    return Score(shared / all_cells if all_cells else 0.0, why=f"{shared} of {len(wanted)} cells, and {len(cited) - shared} others")


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def reasoning_table(
    base: Recipe | None = None, *, evidence: float = 0.5, form_weight: float = 0.1, form: str = "", n: int = 5, beta: float = 0.001
) -> Recipe:
    """evidence: weight of the cells of a right answer.  form_weight: of the form.  form: a regular expression that replies should
    match.  n, beta: of grpo."""
    base = base or grpo(n=n, beta=beta).but(minibatches=8, weighting=token_mean())
    formed = format_ok(pattern=form) if form else answer_given()
    grounded = (base.reward or correct()) * (1 + evidence * cited_cells().named("evidence"))
    return base.but(reward=grounded + form_weight * formed.named("form"))


fidelity = "core"
left_out = (
    "the preparation of data by large models (difficulty from five answers each, cells annotated); F1 above 1/2 for an answer "
    "that is not exact, as on TAT-QA: take `token_f1` for the verifier there; and the start after SFT"
)
data = Data(
    answer="the gold answer",
    evidence=Column('the cells that it rests on, {"value", "column"} each', optional=True),
    rows=[
        {
            "prompt": "| city | people |\n| Oslo | 700 |\n| Rome | 2800 |\nWhich city is larger?",
            "answer": "Rome",
            "evidence": [{"value": "2800", "column": "people"}],
        },
        {
            "prompt": "| day | rain |\n| Mon | 3 |\n| Tue | 5 |\nHow much rain in all?",
            "answer": "8",
            "evidence": [{"value": "3", "column": "rain"}, {"value": "5", "column": "rain"}],
        },
    ],
)

EIGHT = {"n": 8}
claim = Claim(
    says="the whole right reply, cells and answer, becomes likelier in as many updates than where the answer alone is paid",
    versus="reasoning_table", task="cells", measure="gold", direction="higher", margin=0.023, settings=EIGHT,
    versus_settings={**EIGHT, "evidence": 0.0},
    steps=120, guard=Within("pass@1", low=-0.03),
    fault=Within("train.reward/evidence", high=0.8, says="cells that are rightly cited, where the answer alone is paid"),
    moved=Within("train.reward/evidence", low=0.02, says="cells that are rightly cited"),
    tried="40 steps, three seeds: the baseline rose by .03 where .08 were asked; +.003; 120 steps: +.001, sd .023",
    finding="the whole right reply has a chance of 4% before, 5% where cells are paid and 2% where the answer alone is; cited "
    "rightly are 29% and 20% of cells. Answers go from 25% to 31% and 30%, too little a gain of the answer alone to decide by",
)  # fmt: skip
baseline = "grpo"
