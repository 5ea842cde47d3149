"""ARMAP: a reward model of an agent's episodes, learnt from exploration alone, that guides the planning of a frozen policy.

    episode tau:  what an agent did under any instruction;    intent x:  the instruction that tau fulfils, written in hindsight
    near miss tau-:  tau up to one action, another action in its place, and the agent from there on
    L = -log sigmoid(r(x, tau) - r(x, tau-))
    plan:  the best of n episodes by r;  another attempt, with a reflection, where r is low;  or tree search whose leaves r values

Nobody labels an episode, and the policy never learns. What was done by chance is always the right way to something; the near miss
teaches what matters about it.

Chen et al. 2025, arXiv:2502.12130, by its project page and summaries, and the released code (chidaksh/ARMAP, 2fd80ca, 3149f97):
Eval/sciworld/mcts_agents for the search (gamma 0.9, bonus 6.36 sqrt(ln N) / (1 + n), 10 rollouts, the leaf valued by r of an
episode that is played to its end), main_re.py for reflection (the first attempt stands where none passes the threshold);
RM/scripts: LoRA of rank 64, 1e-5. (inferred): prompts, the threshold, one near miss to an episode, and that the agent goes on
freely after the changed action. For WebShop the code pairs episodes of two agents by the environment's reward; not here.

Rows are starts of an environment, --env FILE.py:NAME, which the policy explores; or episodes in the column `trajectory`. Intents
are of the column `intent`, or of the model --writer (openai:URL#NAME, say), or, with --writer "", the environment's last message,
where that tells what was done. A run is a reward model of episodes: rewardlab answer armap --reward-model model:RUN --plan tree.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Environment,
    Group,
    Learner,
    Measure,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Trajectory,
    measure,
    rollout,
    seed_of,
)  # fmt: skip
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import episode_accuracy, planned_success
from rewardlab.evals.pairs import end_values, pairs_won
from rewardlab.methods.baselines.bradley_terry import bradley_terry, on_pairs
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.episode_tree import episode_tree, shown, with_reflection
from rewardlab.rollouts.goals import reprompted
from rewardlab.rollouts.interactive import go_on, interactive
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.filled import filled
from rewardlab.worlds.errands import shop

MODEL, WRITER = "reward", "writer"
ASK = (
    "An agent did this:\n\n{episode}\n\nWrite the instruction that it has carried out, in one sentence and with every detail that "
    "matters. Write nothing else."
)
N, TRIES = 8, 4
"""Episodes of a plan; actions sampled in the place of one, of which the first that is another stands."""


# ---- episodes, and near misses of them ---------------------------------------------------------------------------------------


def near_miss(texts: Sequence[str], others: Sequence[Sequence[str]], rng: random.Random) -> list[str] | None:
    """The actions and answers of an episode, in turn, with one action in the place of another.

    It comes from the same turn of one of the others, or else from any turn. None where all actions are the same.
    """
    for at in rng.sample(range(0, len(texts), 2), len(texts[::2])):
        same_turn = [other[at] for other in others if at < len(other) and other[at] != texts[at]]
        any_turn = [action for other in others for action in other[::2] if action != texts[at]]
        if found := same_turn or any_turn:
            return [*texts[:at], rng.choice(found), *texts[at + 1 :]]
    return None


def written_episodes(problems: Sequence[Problem], run: Run) -> list[tuple[Trajectory, Trajectory]]:
    """The episodes in the column `trajectory`, each with its near miss: of the column `negative`, or made from the other rows."""
    texts = [_episode_of(p) for p in problems]
    made: list[Problem] = []
    for i, (p, own) in enumerate(zip(problems, texts, strict=True)):
        rng = random.Random(seed_of("armap", run.seed, run.moment, p.key))
        other = list_of(p.meta.get("negative")) or near_miss(own, [*texts[:i], *texts[i + 1 :]], rng)
        if other:
            made.append(replace(p, meta={**p.meta, "trajectory": own, "negative": other}))
    return [(a, b) for a, b in recorded(fields=("trajectory", "negative"))(made, run)]


def _episode_of(problem: Problem) -> list[str]:
    texts = list_of(problem.meta.get("trajectory"))
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise RewardlabError(
            f"armap explores an environment (--env FILE.py:NAME), or reads episodes in the column 'trajectory', a list in which "
            f"actions and answers take turns; problem {problem.question[:60]!r} has no such list"
        )
    return texts


def explored(problems: list[Problem], run: Run, env: Environment, turns: int, temperature: float) -> list[Any]:
    """An episode of each problem, with its near miss; without those to which no other action was found."""
    episodes = [group[0] for group in interactive(env=env, n=1, turns=turns, temperature=temperature)(problems, run)]
    missed = near_misses(episodes, run, env, turns, temperature)
    return [(t, other) for t, other in zip(episodes, missed, strict=True) if other is not None]


def near_misses(episodes: list[Trajectory], run: Run, env: Environment, turns: int, temperature: float) -> list[Any]:
    """Each episode up to one of its actions, with another one in its place, and from there on played anew; None without another."""
    rngs = [random.Random(seed_of("armap", run.seed, run.moment, t.problem.key)) for t in episodes]
    places = [rng.choice([i for i, x in enumerate(t.turns) if x.author]) for t, rng in zip(episodes, rngs, strict=True)]
    kept = [replace(t, turns=t.turns[:at], stop=None) for t, at in zip(episodes, places, strict=True)]
    sampling = Sampling(run.max_new, temperature, stop=env.stop)
    sampled = run.policy.extend([t for t in kept for _ in range(TRIES)], sampling, run.rng("near misses"))
    found: dict[int, Trajectory] = {}
    for i, (t, at) in enumerate(zip(episodes, places, strict=True)):
        others = [x for x in sampled[i * TRIES : (i + 1) * TRIES] if x.reply.strip() != t.turns[at].text.strip()]
        if others:
            found[i] = others[0]
    rows, states = list(found.values()), [_state_at(episodes[i], places[i], run, env) for i in found]
    go_on(env, rows, states, run, sampling, turns)
    ended = dict(zip(found, rows, strict=True))
    return [ended.get(i) for i in range(len(episodes))]


def _state_at(t: Trajectory, at: int, run: Run, env: Environment) -> Any:
    """The environment's state before the turn of this number: the actions before it are done again, from the same start."""
    _, state = env.start(t.problem, _seed(t, run))
    for turn in t.turns[:at]:
        if turn.author is not None:
            _, state = env(state, turn)
    return state


def _seed(t: Trajectory, run: Run) -> int:
    """That of the only episode of its problem."""
    return seed_of(run.seed, "environment", run.moment, t.problem.key, 0)


# ---- hindsight ---------------------------------------------------------------------------------------------------------------


def intents(episodes: Sequence[Trajectory], run: Run, writer: str, tells: bool = True) -> list[str]:
    """The instruction that each episode fulfils, or "".  tells: whether the environment's last message may be it; where there is no
    environment, what was written of a row is remembered."""
    ends = [last_said(t) if tells else "" for t in episodes]
    known = {} if tells else run.memory.setdefault("armap.intents", {})
    said = [str(t.problem.meta.get("intent") or known.get(t.problem.key, "")) for t in episodes]
    lacking = [i for i, text in enumerate(said) if not text and writer]
    for i, text in zip(lacking, _written([episodes[i] for i in lacking], run, run.model(writer)) if lacking else (), strict=True):
        said[i] = known[episodes[i].problem.key] = text
    return [text or end for text, end in zip(said, ends, strict=True)]


def _written(episodes: Sequence[Trajectory], run: Run, model: Any) -> list[str]:
    """What the model says of each; "" of what its context does not hold."""
    asked = [replace(t.problem.reworded(filled(ASK, episode=shown(t))), meta={}) for t in episodes]
    read = model.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    held = [i for i, t in enumerate(read) if len(t) + run.max_new <= model.context]
    done = model.extend([read[i] for i in held], Sampling(run.max_new, 0.0), run.rng("intents"))
    found = dict(zip(held, (t.reply.strip() for t in done), strict=True))
    return [found.get(i, "") for i in range(len(read))]


def last_said(t: Trajectory) -> str:
    """What the environment said after the last action."""
    return t.turns[-1].text.strip() if t.turns[-1].author is None and len(t.turns) > 1 else ""


@rollout(rows=lambda **_: 2, across_problems=True)
def in_hindsight(
    problems: list[Problem], run: Run, *, env: Environment | None = None, turns: PositiveInt = 4, writer: str = "policy",
    temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """An episode and its near miss, both under the intent that the episode fulfils. Without `env` rows bring the episodes.

    A near miss that the environment tells to have done the same is left out, and so is an episode without an intent. Logged: used,
    the share of problems that give a pair; where none does, the step teaches nothing.
    """
    found = explored(problems, run, env, turns, temperature) if env else written_episodes(problems, run)
    told = intents([a for a, _ in found], run, writer, tells=env is not None)
    same = [env is not None and bool(last_said(a)) and last_said(a) == last_said(b) for a, b in found]
    pairs = [
        [_under(t, intent, run, env) for t in pair]
        for pair, intent, alike in zip(found, told, same, strict=True)
        if intent and not alike
    ]
    run.log("used", len(pairs) / len(problems))
    if not pairs:
        # twice the same row, whose scores have no gradient
        prompts = run.policy.read([Trajectory(p) for p in problems[:1]], [p.prompt for p in problems[:1]])
        return [run.policy.write(prompts, ["."]) * 2]
    return pairs


def _under(t: Trajectory, intent: str, run: Run, env: Environment | None) -> Trajectory:
    """The episode under this instruction, which the environment opens as it did."""
    told = t.problem.reworded(intent)
    opening, _ = env.start(t.problem, _seed(t, run)) if env else (None, None)
    return reprompted(t, told if opening is None else replace(told, prompt=(*told.prompt, opening)), run)


# ---- what it is measured by --------------------------------------------------------------------------------------------------


@measure
def told_apart(problems: Sequence[Problem], run: Run, *, pairs: Rollout, plans: Measure | None = None) -> dict[str, float]:
    """pair_accuracy: the share of held-out episodes that score above their near miss.  plans: what is measured besides, first."""
    groups = pairs(list(problems), run)
    values = [end_values(run.models[MODEL], [group[i] for group in groups]) for i in (0, 1)]
    apart = pairs_won(*values)
    return {**plans(problems, run), "pair_accuracy": apart["pair_accuracy"]} if plans else apart


# ---- the recipe --------------------------------------------------------------------------------------------------------------


def armap(
    base: Recipe | None = None, *, env: Environment | None = None, turns: int = 4, writer: str = "policy", temperature: float = 1.0,
    n: int | None = None, reward_model: str = "", plan: Literal["best", "reflection", "tree"] = "best",
    threshold: float | None = None, reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """env, turns, temperature: what is explored, and for how long.  writer: the model that writes intents; "": the environment.
    n: episodes of a plan, None: 8.  reward_model: model:RUN of one that was trained, which plans by `plan`; nothing is trained.
    threshold: above which a score needs no further attempt, None: 0.  reward_lr, problems, init: as in `bradley_terry`."""
    base = base or bradley_terry(reward_lr=reward_lr, problems=problems, init=init)
    if reward_model:
        score = model_score(model=reward_model)
        found, alone = _plans(env, turns, n, score, threshold)[plan], episode_accuracy(rollout=_plans(env, turns, 1, score)["best"])
        others = tuple(x for x in base.also if x.name != MODEL)
        return base.but(rollout=found, reward=score, select=best(), also=others, measure=alone)
    taught = on_pairs(base, reward_lr=reward_lr, init=init, objective=preference_loss())
    asked = () if writer in ("", "policy") else (Learner(WRITER, writer, Recipe(), every=0),)
    pairs = in_hindsight(env=env, turns=turns, writer=WRITER if asked else writer, temperature=temperature)
    planned, score = None, model_score(model=MODEL)
    if env:
        plans = _plans(env, turns, n, score)
        planned = planned_success(score=score, sampled=plans["best"], tree=plans["tree"], greedy=plans["greedy"])
    return taught.but(rollout=pairs, also=(*taught.also, *asked), measure=told_apart(pairs=pairs, plans=planned))


def _plans(
    env: Environment | None, turns: int, n: int | None, score: Reward, threshold: float | None = None
) -> dict[str, Rollout]:  # fmt: skip
    """Ways to plan, each with at most n episodes."""
    if env is None:
        raise RewardlabError("armap plans in an environment: name one with --env FILE.py:NAME")
    n, play = n or N, {"env": env, "turns": turns}
    return {
        "best": interactive(n=n, **play),
        "reflection": with_reflection(n=n, score=score, threshold=threshold or 0.0, **play),
        "tree": episode_tree(iterations=n, score=score, **play),
        "greedy": interactive(n=1, temperature=0.0, **play),
    }


fidelity = "core"
left_out = (
    "a vision-language model that reads pages as pictures; first instructions by a language model, which are the rows here; "
    "several near misses of an episode; the reward for short episodes that a user may ask for"
)
data = Data(
    prompt="an instruction, from which the agent begins; of `trajectory`, any text: the intent stands in its place",
    trajectory=Column("without an environment, an episode: a list in which actions and answers take turns", optional=True),
    intent=Column("the instruction that the episode fulfils; without it, a model writes it", optional=True),
    negative=Column("an episode that comes near and does not; without it, one action is changed", optional=True),
    rows=[
        {
            "prompt": "Buy something.", "intent": "Buy a red hat in size M.",
            "trajectory": ["search red hat", "1 Red hat 2 Red scarf", "click 1", "Sizes: S, M, L", "click M", "Bought."],
            "negative": ["search red hat", "1 Red hat 2 Red scarf", "click 1", "Sizes: S, M, L", "click L", "Bought."],
        },
        {"prompt": "Try.", "intent": "Boil water in a kitchen.", "trajectory": ["go to kitchen", "A pot.", "heat it", "It boils."]},
        {"prompt": "Look around.", "trajectory": ["go to workshop", "A battery, a lamp.", "connect battery to lamp", "It shines."]},
    ],
)  # fmt: skip

check = Check(
    says="of 8 episodes of a frozen policy, the one that scores highest by a reward model learnt from hindsight alone succeeds "
    "more often than any one (intents are told by the environment; the model reads surprise)",
    versus=None, task="errands", measure="best", direction="higher", margin=0.1, against="random",
    settings={"env": shop(), "turns": 3, "writer": "", "init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16},
    problems=200, steps=60, judge=Within("pair_accuracy", low=0.6, says="held-out episodes above their near miss"),
    tried="one run of 100 problems: .65, by tree search .64, at random .38, greedily .31; where the agent slips at random alone, "
    "so that greedily all is right, .98 after 40 steps",
    finding="the best of 8 episodes by the model learnt from hindsight succeeds in 53%, any one in 38%; one of the five seeds has "
    "most of the difference (88%), so that they do not decide. It ranks 89% of held-out episodes above their near miss",
)  # fmt: skip
baseline = "bradley_terry"
kind = "reward-model"
