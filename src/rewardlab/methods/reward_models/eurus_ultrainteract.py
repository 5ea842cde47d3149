"""Eurus-RM: pairs at every turn of a preference tree, with scores that are above 0 for right replies and below it for wrong ones.

    turn 1   prompt                                            right y+_1    wrong y-_1
    turn t   prompt, y-_1, o_1, ..., y-_(t-1), o_(t-1)         right y+_t    wrong y-_t     o: what the environment and a critic say
    L = -log sigmoid(r(y+) - r(y-))                            Bradley-Terry
        - log sigmoid(r(y+)) - log sigmoid(-r(y-))             absolute terms, where replies are right and wrong, not just better

Bradley-Terry alone fixes differences: scores of right replies may all sink, as long as those of wrong ones sink further, and scores
of different prompts cannot be compared. The right action ends its branch, and the wrong one is expanded, so that a model also
learns from what is said to mistakes.

Yuan et al. 2024, arXiv:2404.02078, section 3 for the loss and section 2.3 for the trees, of five turns at most; the released format
of pairs is read as it is (OpenBMB/Eurus, UltraInteract_pair): --prompt-column trajectory, then `chosen` and `rejected`. Their
training code for the reward model was not released. Of other data (UltraFeedback, UltraSafety) they take Bradley-Terry alone: rows
with `absolute` false. (inferred): all turns of a tree are learnt in one step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Message,
    Outputs,
    Problem,
    Recipe,
    Rollout,
    Run,
    Score,
    Trajectory,
    Update,
    measure,
    objective,
    rollout,
)  # fmt: skip
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of, number_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.pairs import last_value, margin, preference_loss, row_sum
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveInt

SIDES = ("chosen", "rejected")
KEYS = ("observation", *SIDES)
"""What a further turn of a tree says: the answer to the wrong reply before, and its own pair."""


def pairs_at_each_turn(problem: Problem, most: int, column: str = "turns") -> Iterator[Problem]:
    """The problem with its pair, then one for each further turn, whose prompt goes on with the wrong reply and the observation."""
    yield problem
    further = problem.meta.get(column)
    turns = [] if further is None else list_of(further)
    if turns is None or not all(isinstance(turn, dict) and all(isinstance(turn.get(key), str) for key in KEYS) for turn in turns):
        raise RewardlabError(
            f"problem {problem.question[:60]!r}: its column {column!r} must be a list of further turns, each with the texts "
            f"{', '.join(KEYS)}"
        )
    for turn in turns[: most - 1]:
        wrong = Message("assistant", problem.meta["rejected"])
        told = {key: turn[key] for key in SIDES}
        prompt = (*problem.prompt, wrong, Message("user", turn["observation"]))
        problem = replace(problem, prompt=prompt, meta={**problem.meta, **told})
        yield problem


@rollout(wraps="inner")
def at_each_turn(problems: list[Problem], run: Run, *, inner: Rollout, most: PositiveInt = 5) -> list[Group]:
    """The groups of `inner` for the pair of each turn of each problem's tree; of its first `most` turns."""
    return inner([pair for problem in problems for pair in pairs_at_each_turn(problem, most)], run)


@reward
def absolute_in_data(trajectory: Trajectory) -> Score:
    """1 where replies are right or wrong; 0 where the column `absolute` says that one is merely better than the other."""
    said: Any = trajectory.problem.meta.get("absolute")
    return Score(1.0 if said is None else number_of(said), why="the column absolute is neither true nor false")


@objective(unit="group", wants=("value",))
def absolute_rewards(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(G,) -log sigmoid(r) of the chosen row and -log sigmoid(-r) of the other, multiplied by the reward of the chosen row."""
    scores = last_value(out, batch)
    margin(scores, batch)  # refuses groups of another size than two
    counts = row_sum(batch.reward, batch)[::2]
    return counts * (-F.logsigmoid(scores[::2]) - F.logsigmoid(-scores[1::2]))


@measure
def accuracy_by_turn(problems: Sequence[Problem], run: Run, *, model: str = "reward", most: PositiveInt = 5) -> dict[str, float]:
    """Of held-out pairs of all turns, the share in which the right reply scores higher, ties half.

    pair_accuracy.turn2: of the pairs of a turn, where trees have several.  sign: the share of all these replies that score above 0
    and are right, or below 0 and are wrong.  chosen, rejected: the mean scores.
    """
    turns = [list(enumerate(pairs_at_each_turn(problem, most), 1)) for problem in problems]
    turn = np.array([t for tree in turns for t, _ in tree])
    groups = recorded(fields=SIDES)([pair for tree in turns for _, pair in tree], run)
    values = end_values(run.models[model], [t for group in groups for t in group]).reshape(-1, 2)
    chosen, rejected = values.T
    wins = np.where(chosen == rejected, 0.5, chosen > rejected)
    low, high = mean_interval(wins.tolist())
    by_turn = {f"pair_accuracy.turn{t}": float(wins[turn == t].mean()) for t in np.unique(turn)} if turn.max() > 1 else {}
    return {
        "pair_accuracy": float(wins.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(wins)), **by_turn,
        "sign": float(((chosen > 0).mean() + (rejected < 0).mean()) / 2),
        "chosen": float(chosen.mean()), "rejected": float(rejected.mean()),
    }  # fmt: skip


def eurus_ultrainteract(
    base: Recipe | None = None, *, absolute: float = 1.0, most: int = 5, reward_lr: float | None = None, problems: int = 32,
    init: str = "value-head",
) -> Recipe:  # fmt: skip
    """absolute: weight of the absolute terms.  most: turns of a tree.  reward_lr, problems, init: as in `bradley_terry`; each
    problem brings the pairs of all its turns."""
    base = base or bradley_terry(problems=problems)
    loss = preference_loss() + absolute * absolute_rewards() if absolute else preference_loss()
    taught = Recipe(objective=loss, reward=absolute_in_data(), update=Update(lr=reward_lr, loss_kind="scorer"))
    others = tuple(learner for learner in base.also if learner.name != "reward")
    return base.but(
        rollout=at_each_turn(inner=recorded(fields=SIDES), most=most),
        measure=accuracy_by_turn(most=most),
        also=(*others, Learner("reward", init, taught)),
    )


fidelity = "core"
left_out = (
    "growing the trees: actors, a Python interpreter and GPT-4 as the critic; rows bring them. The policies trained by KTO and NCA "
    "on the same pairs"
)
data = Data(
    chosen="a right reply",
    rejected="a wrong reply",
    turns=Column(
        "further turns of the tree, in order: a list of {observation, chosen, rejected}, where the observation answers the wrong "
        "reply before it",
        optional=True,
    ),
    absolute=Column("false for a row whose replies are not right and wrong, but better and worse", optional=True),
    rows=[
        {
            "prompt": "A recipe for 4 people takes 300 g of flour. How much do 10 people need, in g?",
            "chosen": "300 / 4 = 75 g each. 10 * 75 = 750. Answer: 750", "rejected": "300 + 10 * 4 = 340. Answer: 340",
            "turns": [
                {
                    "observation": "Your answer is wrong. How much does one person need?",
                    "chosen": "One person needs 300 / 4 = 75 g, so 10 need 750. Answer: 750",
                    "rejected": "One person needs 4 / 300 g. Answer: 0.13",
                },
            ],
        },
        {
            "prompt": "Let $f(x) = 2x^2 - 3$. What is $f(-2)$?",
            "chosen": "f(-2) = 2 * 4 - 3 = 5. Answer: 5", "rejected": "f(-2) = -2 * 4 - 3 = -11. Answer: -11",
        },
        {
            "prompt": "Why is the sky blue?", "chosen": "Air scatters blue light more than red light.", "rejected": "It is blue.",
            "absolute": False,
        },
    ],
)  # fmt: skip

LEARNT = {"init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="with the absolute terms a reward model prefers more right solutions than by Bradley-Terry alone, where 25% of the labels "
    "are turned round (the model reads surprise)",
    versus="bradley_terry", task="preferences:flip=0.25", measure="pair_accuracy", direction="higher", margin=0.02,
    settings=LEARNT, versus_settings=LEARNT, by=accuracy_by_turn(), problems=500, steps=60,
    fault=Within("sign", high=0.95, says="replies on the right side of 0"),
    moved=Within("sign", low=0.02, says="replies on the right side of 0"),
    finding="90% of held-out pairs are ranked right with the absolute terms and 85% without, at equal tokens; seeds differ by more "
    "(72% to 98% without), so that five do not decide",
)  # fmt: skip
