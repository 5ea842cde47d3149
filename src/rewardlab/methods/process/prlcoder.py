"""PRLCoder: mutate and run lines of reference programs, train a model on which lines are wrong, and reward PPO line by line.

    mutant: a reference program with one line changed;     label of that line: whether the program still passes its tests
    line model: cross-entropy to 1 at the lines before it, and to the label at it;     lines after it are not judged
    reward: outcome + weight (2 sigma(V) - 1) at the end of each line of the block of code, or of the reply if it has none

Tests say of a program that it fails, and not where. Running each mutant gives labels of single lines that nobody has to write, and
a mutant that passes is a right line written in another way.

Ye et al. 2025, arXiv:2502.01715. (inferred): that lines after the change are not judged, the scale of the rewards, and their place
at the ends of lines. The line model learns beside the policy, one batch behind.
"""

from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Group, Learner, Problem, Recipe, Run, Scores, Update, credit
from rewardlab.core.part import Part, decorator
from rewardlab.credit.implicit import log_fit
from rewardlab.data.columns import Column, Data
from rewardlab.data.mutants import mutant_of
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.mutated import line_labels, mutated_problems
from rewardlab.rollouts.recorded import recorded
from rewardlab.rollouts.separated import separated

problems_from = decorator(Part)


@problems_from
def mutants(
    groups: list[Group], scores: Scores, run: Run, *, column: str = "solution", separator: str = "\n", each: int = 2
) -> list[Problem]:
    """`each` mutants of every problem's reference program, in the column `mutant`, with the place of the changed line, `line`."""
    made = mutated_problems(groups, run, column, each, lambda program, rng: mutant_of(program, rng, separator))
    if not made:
        raise RewardlabError(
            f"PRLCoder needs reference programs, and no problem of this step has one that can change in {column!r}"
        )
    return made


@credit(needs=("prm.value",))
def plus_lines(a: Tensor, batch: Batch, run: Run, *, weight: float = 0.25) -> Tensor:
    """Add weight (2 sigma(V) - 1) at the end of each step of a reply that has a verdict. prm_fit is logged (`log_fit`)."""
    said = torch.zeros_like(a)
    for i, (row, _) in enumerate(batch.rows):
        at = list(row.steps)
        said[i, at] = 2 * batch.columns["prm.value"][i, at].sigmoid() - 1
    log_fit(said.sum(1) / (said != 0).sum(1).clamp(min=1), batch, run, "prm_fit")
    return torch.where(batch.rewarded.any(1, keepdim=True), a + weight * said, 0.0)


def prlcoder(
    base: Recipe | None = None, *, column: str = "solution", separator: str = "\n", each: int = 2, weight: float = 0.25,
    init: str = "value-head", prm_lr: float | None = None, prm_epochs: int = 2,
) -> Recipe:  # fmt: skip
    """column, separator, each: of the reference program, between its lines, and mutants per problem and step.  weight: of the lines
    beside the outcome.  init, prm_lr, prm_epochs: of the line model (`Learner.init`)."""
    base = base or ppo()
    if not any(x.name == "critic" for x in base.also):
        raise RewardlabError("PRLCoder pays a policy that has a critic: give it a base with a learner of this name, as ppo has")
    pays = plus_lines(weight=weight)
    # the critic foretells what the policy is paid
    own = tuple(replace(x, recipe=x.recipe.but(credit=pays >> x.recipe.credit)) if x.name == "critic" else x for x in base.also)
    prm = Recipe(
        rollout=separated(inner=recorded(fields=("mutant",)), at=separator), reward=line_labels(), objective=label_cross_entropy(),
        update=Update(lr=prm_lr, epochs=prm_epochs, loss_kind="scorer"),
    )  # fmt: skip
    learner = Learner("prm", init, prm, problems=mutants(column=column, separator=separator, each=each))
    # prose, and the fences around a program, are no lines of it
    rollout = separated(inner=base.required("rollout"), at=separator, program=True)
    return base.but(rollout=rollout, credit=pays >> base.required("credit"), also=(*own, learner))


fidelity = "reading"
left_out = (
    "the teacher model that mutates and refactors lines (here rules of data/mutants.py do, of which few leave a program right), "
    "the supervised training on the references first, and a line model that has learnt before the policy does"
)
data = Data(
    answer='tests, {"tests": "assert ..."} or {"io": [["input", "output"], ...]}',
    solution=Column("a program that passes them", setting="column"),
    rows=[
        {
            "prompt": "Write a function add(a, b) that returns their sum.",
            "answer": {"tests": "assert add(2, 3) == 5\nassert add(0, 0) == 0"},
            "solution": "def add(a, b):\n    return a + b",
        },
        {
            "prompt": "Write a function twice(text) that returns the text two times.",
            "answer": {"tests": "assert twice('ab') == 'abab'\nassert twice('') == ''"},
            "solution": "def twice(text):\n    return text * 2",
        },
    ],
    verified_by="code",
)

claim = Claim(
    says="programs pass their tests sooner when lines are paid too than with PPO on the tests alone, after equal updates",
    versus="ppo", task="codes", measure="auc.truth", direction="higher", margin=0.01,
    settings={"separator": ";", "init": "value-head:surprise", "lr": 1e-4}, versus_settings={"lr": 1e-4}, steps=8,
    judge=Within("train.prm_fit", low=0.4, says="correlation of the mean of a program's lines and its passing"), start=None,
    tried="40 steps: PPO reaches .98, at its own rate of 3e-4 and at 1e-4; at 3e-4, and without surprise, the line model "
    "correlates with passing at -.13; at 1e-4 and with it at .28, effect -.003 (3 seeds)",
    finding="60% of programs pass before, 82% after, paid for lines or not: the model of lines hardly learns to tell good programs "
    "from bad ones (correlation .15), so that nothing is said of what it would be worth",
    version=3, replaces="a line model whose word correlated with passing at .15 was let through; before that, after 12 steps, PPO "
    "was right in .90 of the programs: no room to differ (effect +.001)",
)  # fmt: skip
baseline = "ppo"
