"""Orcust: turn rewards for a GUI agent, verified by the environment and bounded by principles for its reasoning.

    r_k = w m_k, and, if turn k is of the right form, f + e_k (1 - b + b p_k) more
    e: whether the environment verifies the turn's goal;   p: share of principles that the reasoning keeps
    m: chance of e, by a model of turns, which learns by cross-entropy to e_k;      policy: GRPO on the rewards of turns

Success at the end says nothing of the turns, and a click that hits by luck is paid like one that was reasoned. Goals that the
environment can check on the way give labels to a reward model of turns without annotators.

Lu et al. 2025, arXiv:2509.17917 (abstract and our row; no code was found). (inferred): the formula, f = .1, b = .5, w = .2, that
the model learns beside the policy, group-relative credit of turns, and principles in words, asked of a judge one by one. The
environment is that of the task `screens`, or any whose messages pay 1 for a turn that reached its goal (env=...).
"""

from dataclasses import replace
from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Group, Learner, Recipe, Run, Scores, Trajectory, Update
from rewardlab.data.columns import Data
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.criteria import by_criterion
from rewardlab.rewards.environment import paid
from rewardlab.rewards.principled import principled_turns, turn_chances
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rewards.turns import each_turn
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.settings.domain import NonNegativeFloat
from rewardlab.worlds.screens import FORM, clicks, named_first

JUDGE, TURNS = "judge", "turns"
PRINCIPLES = (
    "The reasoning names what is on the screen, and nothing else.", "The reasoning says which element the goal asks for.",
    "The action follows from the reasoning.",
)  # fmt: skip


@reward(over="groups")
def keeps(groups: list[Group], run: Run, *, principle: str, model: str = JUDGE) -> Scores:
    """The chance that the last reply of an episode follows a principle, by a model that reads goal, last observation and reply: Yes
    against No.
    """
    return by_criterion(criterion=principle, model=model)([[_shown_last(t) for t in group] for group in groups], run)


def _shown_last(t: Trajectory) -> Trajectory:
    """The reply as one to the goal with the message that came before it, where that is another than the prompt."""
    read = [turn for turn in t.turns[:-1] if turn.author is None]
    return replace(t, problem=t.problem.reworded(f"{t.problem.question}\n\n{read[-1].text}")) if len(read) > 1 else t


def orcust(
    base: Recipe | None = None, *, env: Environment | None = None, n: int | None = None, turns: int = 2,
    principles: Reward | None = None, judge: str = "copy:policy", form: str | None = None, well_formed: float = 0.1,
    bound: float = 0.5, learnt: NonNegativeFloat = 0.2, by_turns: bool = True, model_lr: float | None = None,
) -> Recipe:  # fmt: skip
    """env, n, turns: what is played, how often per problem (None: as the base does, or else 8), and for how long.
    principles: a reward of turns from 0 to 1; None: the mean of what the model `judge` says of `PRINCIPLES`.  form: of an action, a
    regular expression; None: a click as GUI agents write one.  well_formed, bound, learnt: f, b and w; learnt=0 trains no model of
    turns.  by_turns: False pays success alone, as the task's verifier sees it.  model_lr: of that model."""
    base = base or grpo(n=n or 8)
    asked = [each_turn(inner=keeps(principle=text)).named(f"principle {i}") for i, text in enumerate(PRINCIPLES)]
    kept = principles or sum((x / len(asked) for x in asked[1:]), start=asked[0] / len(asked))
    reward = principled_turns(principles=kept, form=FORM if form is None else form, well_formed=well_formed, bound=bound)
    also = () if principles or not by_turns else (Learner(JUDGE, judge, Recipe(), every=0),)
    if learnt and by_turns:
        reward = reward + learnt * turn_chances(model=TURNS)
        labels = Recipe(reward=paid(), objective=label_cross_entropy(), update=Update(lr=model_lr, loss_kind="scorer"))
        also = (*also, Learner(TURNS, "value-head", labels))
    play: dict[str, Any] = {"env": env or clicks(), "turns": turns}
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), n=n, **play),
        reward=reward if by_turns else base.reward or correct(),
        measure=episode_accuracy(rollout=interactive(n=1, **play)), also=(*base.also, *also),
    )  # fmt: skip


fidelity = "reading"
left_out = (
    "virtual machines with instruments that collect the episodes, the principles that the paper has a language model write for a "
    "task, screenshots (screens are texts here), and how the paper puts rules, principles and the learnt model together"
)
data = Data(
    prompt="the goals, and what the first screen shows",
    screens="what each screen shows, a list: of each element, by its label, the corners left, top, right, bottom",
    targets="the label that is to be clicked on each screen, a list",
    rows=[
        {
            "prompt": "Open the settings, then turn on dark mode.\nSettings 12 40 88 64\nHelp 12 80 88 104",
            "screens": [
                {"Settings": [12, 40, 88, 64], "Help": [12, 80, 88, 104]},
                {"Dark mode": [20, 120, 160, 144], "Language": [20, 160, 160, 184]},
            ],
            "targets": ["Settings", "Dark mode"],
        },
        {
            "prompt": "Save the document.\nSave 5 10 80 30\nPrint 5 40 80 60",
            "screens": [{"Save": [5, 10, 80, 30], "Print": [5, 40, 80, 60]}],
            "targets": ["Save"],
        },
    ],
    verified_by="all_clicked",
)

claim = Claim(
    says="paid by turns bound to principles, a policy clicks through more screens than by success alone, after equal updates",
    versus="orcust", task="screens", measure="auc.truth", direction="higher", margin=0.02,
    settings={"principles": named_first()}, versus_settings={"principles": named_first(), "by_turns": False}, problems=500,
    steps=60, fault=Within("train.signal", high=0.9, says="groups whose episodes differ in success"), start=None,
    finding="8% right before; after 60 steps 18% paid by turns and 20% by success alone: neither is clear of the noise between "
    "runs, so that this world decides nothing",
    version=2, replaces="in 30 steps the baseline learnt .09, less than 3 standard deviations of that (.12)",
)  # fmt: skip
baseline = "grpo"
