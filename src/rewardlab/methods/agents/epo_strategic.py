"""EPO: a policy writes a strategy for each turn, which another, frozen model reads and acts on; only the policy learns.

    turn k:  strategy s_k ~ policy(what was done and answered);   action ~ actor(the same, s_k);   answer of the environment
    r_k = 1 if a judge finds s_k critical for the goal;   else, at the last turn, how far the goal was reached;   else 0
    G_k = r_k + gamma G_(k+1),   A_k = G_k / max_j |G_j|;    loss = - mean over episodes and turns of A_k mean_t log pi(s_k)_t

To plan ahead is learnt apart from acting: strategies are free text, their reward says which of them mattered, and they can be given
to any other agent. In a talk both sides are advised by the policy, as they are in its self-play.

Liu et al. 2025, arXiv:2502.12486, by its abstract, and the released code (AlibabaResearch/DAMO-ConvAI, EPO/): in LLaMA-Factory
data/utils/prm.py (8a3bc96), what the judge is asked, shorter here; data/utils/preprocessing.py (9ec21ba), rewards, gamma .99,
goals divided by 10 and returns by the largest; train/sft/trainer.py (8a3bc96), the loss; Sotopia/sotopia/agents/llm_agent.py
(8a3bc96), an actor at temperature .7 that reads all strategies of its side. (inferred): that both sides learn, each from its own
goal; that collecting and learning take turns step by step; and what the actor is told.

--actor and --judge: as judges are named (openai:URL#NAME, hf:PATH, model:RUN, copy:policy). Without --env it is a talk between two,
whose goals are in the column `goals`, and the judge also says how far each was reached. --env FILE.py:NAME: any environment of
text; what it pays is the goal, or else the task's verdict. Where its state has an entry `other`, it is a game of two as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.clients.endpoint import is_served
from rewardlab.clients.messages import Reply
from rewardlab.core import (
    Batch,
    Environment,
    Group,
    Learner,
    Message,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Score,
    Trajectory,
    Turn,
    Update,
    credit,
    environment,
    measure,
    rollout,
    seed_of,
    weighting,
)
from rewardlab.credit.turns import over_turns, turn_of, turn_sums
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of, number_of
from rewardlab.evals.passk import mean_interval
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.rewards.environment import earned_by
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.asked import replies_by
from rewardlab.rollouts.interactive import Together, play
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from rewardlab.text.filled import filled
from rewardlab.text.replies import first_json
from rewardlab.worlds.dilemmas import dilemma, learnt_advice

TELL = (
    "{task}\n\nYou advise the one who acts. In each turn write a strategy for what to do or say next, in one short sentence; you "
    "will be shown what was done, and what came of it."
)
ACT = "{task}\n\n{log}\n\nFollow the newest strategy: write what you do or say next, and nothing else."
JUDGE = (
    "Somebody who follows the strategies of an adviser pursues a goal:\n\n{task}\n\n{log}\n\n{score}Which strategies were "
    'critically important for the goal? Answer in JSON: {"reasoning": "...", "indexes": [numbers of turns]{ask}}'
)
SIDES, ACTOR, JUDGING, TENTHS = ("first side", "second side"), "actor", "judge", 10.0

# ---- what is played --------------------------------------------------------------------------------------------------


@environment(start=lambda problem, seed: (None, {"other": None}))
def talk(state: dict[str, Any], turn: Turn) -> tuple[Message | None, dict[str, Any]]:
    """A talk between two: each hears what the other has said at the same time."""
    return Message("user", f"The other says: {state['other'] or '(nothing)'}"), {"other": None}


@environment(start=lambda problem, seed, env: env.start(problem, seed))
def acted(state: dict[str, Any], turn: Turn, *, env: Environment) -> tuple[Message | None, dict[str, Any]]:
    """`env`, as it answers what was done on the policy's advice; the policy is shown both."""
    done = str(state["done"])
    message, inside = env(state["inside"], replace(turn, text=done))
    state = {"inside": inside, "done": ""}
    return (None if message is None else replace(message, text=f"Done: {done}\n{message.text}")), state


@rollout(rows=lambda n, **_: n, groups=lambda **_: 1)
def advised(
    problems: list[Problem], run: Run, *, env: Environment, actor: str = ACTOR, n: PositiveInt = 4, turns: PositiveInt = 5,
    tell: str = TELL, act: str = ACT, temperature: NonNegativeFloat = 1.0, heat: NonNegativeFloat = 0.7,
) -> list[Group]:  # fmt: skip
    """n episodes of each problem, in which the policy advises and the actor acts; of a game between two both sides, a group each.

    actor: openai:URL#NAME, or a model of the run.  tell, act: what policy and actor read, with {task}, and the actor {log}.
    heat: the actor's temperature. A game ends for both where it ends for one.
    """
    both = [isinstance(state := env.start(p, 0)[1], dict) and "other" in state for p in problems]
    sides = [SIDES if two else ("",) for two in both]
    rows = [(k, p, i, side) for k, p in enumerate(problems) for i in range(n) for side in sides[k]]
    openings = [env.start(p, seed_of(run.seed, "environment", run.moment, p.key, i)) for _, p, i, _ in rows]
    tasks = [
        task_of(p, side) + (f"\n{said.text}" if said else "") for (_, p, _, side), (said, _) in zip(rows, openings, strict=True)
    ]
    prompts = [p.reworded(filled(tell, task=task)).prompt for (_, p, *_), task in zip(rows, tasks, strict=True)]
    episodes = run.policy.read([Trajectory(p, path=(i,), tag=side) for _, p, i, side in rows], prompts)
    states = [{"inside": state, "done": ""} for _, state in openings]

    acts = _acting(actor, act, tasks, heat, run)
    play(acted(env=env), episodes, states, run, Sampling(run.max_new, temperature), turns, together=acts)
    groups: dict[tuple[int, str], Group] = {}
    for (k, _, _, side), t in zip(rows, episodes, strict=True):
        groups.setdefault((k, side), []).append(t)
    return list(groups.values())


def _acting(actor: str, act: str, tasks: Sequence[str], heat: float, run: Run) -> Together:
    """What `play` asks before a reply and after it: the actor acts, and each side is told what the other one did."""

    def acts(games: list[Trajectory], inside: list[Any], live: list[int], replied: bool) -> list[int]:
        ended = [i for i in live if games[i].tag and _other(i, games) not in live]
        for i in ended:
            games[i] = replace(games[i], stop=games[_other(i, games)].stop)
        live = [i for i in live if i not in ended]
        asked = [(Message("user", filled(act, task=tasks[i], log=log_of(games[i]))),) for i in live] if replied else []
        said = replies_by(run, actor, asked, run.max_new, heat)
        done = {i: reply.text.strip() if isinstance(reply, Reply) else "" for i, reply in zip(live, said, strict=False)}
        for i in done:
            own = inside[i]["inside"]
            inside[i] = {"inside": {**own, "other": done[_other(i, games)]} if games[i].tag else own, "done": done[i]}
        return live

    return acts


def _other(i: int, games: Sequence[Trajectory]) -> int:
    """The row of the other side of a game: the sides stand side by side, the first one first."""
    return i + 1 if games[i].tag == SIDES[0] else i - 1


def task_of(problem: Problem, side: str) -> str:
    """What a side reads: the question, and its own goal where the row has goals."""
    goals = list_of(problem.meta.get("goals")) or []
    return f"{problem.question}\nYour goal: {goals[SIDES.index(side)]}" if side and len(goals) == 2 else problem.question


def log_of(t: Trajectory) -> str:
    """Each strategy, numbered from 0, and what was done then and answered."""
    lines: list[str] = []
    for turn in t.turns[1:]:
        number = sum(line.startswith("Turn ") for line in lines)
        lines.append(turn.text if turn.author is None else f"Turn {number}, strategy: {turn.text.strip()}")
    return "\n".join(lines)


# ---- what a turn is paid ---------------------------------------------------------------------------------------------


def read_judgement(text: str, turns: int) -> tuple[set[int], float | None]:
    """The turns that a judge calls critical, and the goal's score from 0 to 10; nothing and None where it cannot be read."""
    found = first_json(text)
    said = found[0] if found and isinstance(found[0], dict) else {}
    marked = {i for x in list_of(said.get("indexes")) or [] if (k := number_of(x)) is not None and 0 <= (i := int(k)) < turns}
    score = number_of(said.get("score"))
    return marked, score if score is not None and 0 <= score <= 10 else None


@reward(over="groups", steps=True)
def strategy_rewards(
    groups: list[Group], run: Run, *, judge: str = "", paid: bool = True, marks: bool = True, scale: PositiveFloat = 1.0
) -> list[list[Any]]:
    """1 for each turn that the judge marks, or else, at the last turn, how far the goal was reached, divided by `scale`.

    judge: openai:URL#NAME or a model of the run; "": nothing is marked.  paid: the goal is what an episode earned (`earned_by`);
    else what the judge says, from 0 to 10, if it says it. No verdict where nobody knows it.  marks: False leaves the goal alone.
    Logged: marked.
    """
    rows = [t for group in groups for t in group]
    # a task may have brought an environment in the place of the talk
    paid, scale = (True, 1.0) if not paid and any(t.paid for t in rows) else (paid, scale)
    earned = earned_by(groups, run)
    told = ["" if x is None or not paid else f"The goal was reached to this degree: {x:g}.\n" for x in earned]
    more = "" if paid else ', "score": from 0, not at all, to 10, fully reached'
    asked = [
        filled(JUDGE, task=task_of(t.problem, t.tag), log=log_of(t), score=score, ask=more)
        for t, score in zip(rows, told, strict=True)
    ]
    said = replies_by(run, judge, [(Message("user", text),) for text in asked], min(512, 8 * run.max_new)) if judge else []
    texts = [reply.text if isinstance(reply, Reply) else "" for reply in said] or [""] * len(rows)
    found = [read_judgement(text, len(t.ends)) for text, t in zip(texts, rows, strict=True)]
    run.log("marked", sum(len(m) for m, _ in found) / max(1, sum(len(t.ends) for t in rows)))
    goals = [x if paid or judged is None else judged for x, (_, judged) in zip(earned, found, strict=True)]
    marked = [of if marks else set() for of, _ in found]
    scores = iter([_steps(t, of, goal, scale) for t, of, goal in zip(rows, marked, goals, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def _steps(t: Trajectory, marked: set[int], goal: float | None, scale: float) -> Any:
    if goal is None or not t.ends:
        return Score(None, why="nobody says how far the goal was reached" if t.ends else "no turn")
    last = len(t.ends) - 1
    return [(end, 1.0 if k in marked else goal / scale if k == last else 0.0) for k, end in enumerate(t.ends)]


@credit
def largest_return_one(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 0.99) -> Tensor:
    """Every decision of a turn gets the discounted return from its turn on, divided by the largest of its row, in size."""
    sums = turn_sums(a, batch.mask)
    after, returns = sums.new_zeros(len(sums)), torch.empty_like(sums)
    for k in reversed(range(sums.shape[1])):
        after = returns[:, k] = sums[:, k] + gamma * after
    largest = returns.abs().amax(1, keepdim=True) if returns.shape[1] else returns
    return over_turns(torch.where(largest > 0, returns / largest.clamp(min=1e-12), 0.0), batch.mask)


@weighting
def each_turn_alike(batch: Batch) -> Tensor:
    """Every row counts the same, every turn of a row, and every decision of a turn."""
    length = turn_sums(torch.ones_like(batch.reward), batch.mask)
    count = (length > 0).sum(1, keepdim=True).clamp(min=1)
    rows = batch.mask.any(1).sum().clamp(min=1)
    share = 1 / (length.clamp(min=1) * count * rows)
    return torch.where(batch.mask, share.gather(1, turn_of(batch.mask).clamp(min=0)), 0.0)


# ---- what it is measured by, and the recipe ----------------------------------------------------------------------------


@measure
def goals_reached(problems: Sequence[Problem], run: Run, *, rollout: Rollout, by: Reward) -> dict[str, float]:
    """goal: the mean reward `by` of held-out episodes, 0 where there is no verdict;  no_verdict: the share of those."""
    scores = by(rollout(list(problems), run), run)
    reached = [float(np.mean([s.total or 0.0 for s in row])) for row in scores]
    low, high = mean_interval(reached)
    missing = float(np.mean([s.total is None for row in scores for s in row]))
    return {"goal": float(np.mean(reached)), "ci95_low": low, "ci95_high": high, "n": float(len(reached)), "no_verdict": missing}


def epo_strategic(
    base: Recipe | None = None, *, env: Environment | None = None, actor: str = "copy:policy", judge: str = "copy:policy",
    n: int = 4, turns: int = 5, gamma: float = 0.99, scale: float | None = None, problems: int = 8, tell: str = TELL,
) -> Recipe:  # fmt: skip
    """env: None is a talk between two.  actor, judge: the models that act, and that mark turns; judge "": nothing is marked.  n,
    turns: episodes of a problem, and turns of an episode.  gamma: per turn.  scale: what the goal is divided by, None: 10 in a
    talk, else 1.  problems: of a step.  tell: what the policy is told, with {task}."""
    base = base or Recipe(name="epo_strategic", update=Update(problems=problems))
    models = {ACTOR: actor, JUDGING: judge}
    known = {name: init if is_served(init) else name for name, init in models.items()}
    others = [Learner(name, init, Recipe(), every=0) for name, init in models.items() if init and not is_served(init)]
    asked = known[JUDGING] if judge else ""
    played = {"env": env or talk(), "actor": known[ACTOR], "turns": turns, "tell": tell}
    goal = {"paid": env is not None, "scale": scale or (1.0 if env else TENTHS)}
    own = strategy_rewards(judge=asked, **goal)
    return base.but(
        rollout=advised(**played, n=n),
        reward=base.reward + own if base.reward else own,
        credit=largest_return_one(gamma=gamma),
        objective=policy_gradient(),
        weighting=each_turn_alike(),
        # in a talk only the judge knows how far it got
        measure=goals_reached(rollout=advised(**played, n=1), by=strategy_rewards(judge="" if env else asked, marks=False, **goal)),
        also=(*base.also, *others),
    )


fidelity = "core"
left_out = "rounds of whole data sets, collected by expert models and learnt for three epochs; Sotopia's scores but the goal"
data = Data(
    # who marks turns, and says how far a goal was reached, must be able to judge: these rows are played for nothing
    settings={"env": "epo_strategic/talk"},
    goals=Column("without --env, the goals of the two sides of a talk, a list of two texts", optional=True),
    rows=[
        {"prompt": "Ann and Bob share a flat. Ann wants to keep a dog; Bob is afraid of dogs.",
         "goals": ["Get Bob to agree to a dog.", "Keep the flat without a dog, and stay friends."]},
        {"prompt": "Cal sells an old bike to Dee.", "goals": ["Sell it for 80 or more.", "Buy it for 60 or less."]},
    ],
)  # fmt: skip

check = Check(
    says="a policy of a number a turn finds strategies that help more often by the marks of a judge who is wrong in one turn of "
    "four than by how far the goal was reached",
    versus=None, task="dilemmas", measure="helpful.process", direction="higher", margin=0.05, against="helpful.outcome",
    model="untrained", settings={"env": dilemma()}, by=learnt_advice(credit=largest_return_one(), weighting=each_turn_alike()),
    problems=8, steps=1, fault=Within("helpful.outcome", high=0.9, says="strategies that help, learnt from the goal alone"),
    tried="two development seeds: .77 and .73 by marks, .96 by the goal less its mean: no fault here, and marks teach less",
    finding="by this judge's marks 76% of strategies help, by the goal alone 96%: where that tells enough, wrong marks cost more",
)  # fmt: skip
baseline = None
