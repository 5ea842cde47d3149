"""EPO: a policy writes a strategy for each turn, which another, frozen model reads and acts on; only the policy learns.

    turn k:  strategy s_k ~ policy(what was done and answered);   action ~ actor(the same, s_k);   answer of the environment
    r_k = 1 if a judge finds s_k critical for the goal;   else, at the last turn, how far the goal was reached;   else 0
    G_k = r_k + gamma G_(k+1),   A_k = G_k / max_j |G_j|;    loss = - mean over episodes and turns of A_k mean_t log pi(s_k)_t

To plan ahead is learnt apart from acting: strategies are free text, their reward says which of them mattered, and they can be given
to any other agent. In a talk both sides are advised by the policy, as they are in its self-play.

Liu et al. 2025, arXiv:2502.12486, by its abstract, and the released code (AlibabaResearch/DAMO-ConvAI, EPO): LLaMA-Factory/data/utils
prm.py (8a3bc96), what the judge is asked, here shorter, and preprocessing.py (9ec21ba), rewards, gamma .99, goals divided by 10 and
returns by the largest; train/sft/trainer.py (8a3bc96), the loss; llama3_sotopia_pi_rl.yaml (5919d1e), lr 1e-6;
Sotopia/sotopia/agents/llm_agent.py (8a3bc96), strategies that are shown to later turns of their own side alone, which the actor
reads with temperature .7. (inferred): that both sides learn, each from its own goal, and that collecting and learning take turns step
by step; and what the actor is told.

--actor and --judge: as judges are named (openai:URL#NAME, hf:PATH, model:RUN, copy:policy). Without --env it is a talk between two,
whose goals are in the column `goals`, and the judge also says how far each was reached. --env FILE.py:NAME: any environment of
text; what it pays is the goal. Where its state has an entry `other`, as of `dilemma`, it is a game between two as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.clients.messages import Reply
from rewardlab.core import (
    Batch,
    Environment,
    Group,
    Message,
    Problem,
    Run,
    Sampling,
    Score,
    Trajectory,
    Turn,
    credit,
    environment,
    rollout,
    seed_of,
    weighting,
)
from rewardlab.credit.turns import over_turns, turn_of, turn_sums
from rewardlab.data.values import list_of, number_of
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.asked import replies_by
from rewardlab.rollouts.interactive import play
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from rewardlab.text.filled import filled
from rewardlab.text.replies import first_json

TELL = (
    "{task}\n\nYou advise the one who acts. In each turn write a strategy for what to do or say next, in one short sentence; you will "
    "be shown what was done, and what came of it."
)
ACT = "{task}\n\n{log}\n\nStrategy for now: {strategy}\n\nWrite what you do or say next, and nothing else."
JUDGE = (
    "Somebody who follows the strategies of an adviser pursues a goal:\n\n{task}\n\n{log}\n\n{score}Which strategies were critically "
    'important for the goal? Answer in JSON: {"reasoning": "...", "indexes": [numbers of turns]{ask}}'
)
SIDES, ACTOR, JUDGING, TENTHS = ("first side", "second side"), "actor", "judge", 10.0

# ---- what is played --------------------------------------------------------------------------------------------------


def _begin(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, dict[str, Any]]:
    return None, {"other": None}


@environment(start=_begin)
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

    actor: openai:URL#NAME, or a model of the run.  tell, act: what policy and actor read, with {task}, and {log} and {strategy}.
    heat: the actor's temperature. A game ends for both where it ends for one.
    """
    both = [isinstance(state := env.start(p, 0)[1], dict) and "other" in state for p in problems]
    rows = [(p, i, side) for p, two in zip(problems, both, strict=True) for i in range(n) for side in (SIDES if two else ("",))]
    openings = [env.start(p, seed_of(run.seed, "environment", run.moment, p.key, i)) for p, i, _ in rows]
    tasks = [task_of(p, side) + (f"\n{said.text}" if said else "") for (p, _, side), (said, _) in zip(rows, openings, strict=True)]
    prompts = [p.reworded(filled(tell, task=task)).prompt for (p, *_), task in zip(rows, tasks, strict=True)]
    episodes = run.policy.read([Trajectory(p, path=(i,), tag=side) for p, i, side in rows], prompts)
    states = [{"inside": state, "done": ""} for _, state in openings]

    def acts(games: list[Trajectory], inside: list[Any], live: list[int], advised: bool) -> list[int]:
        on = set(live)
        for i in [i for i in live if games[i].tag and _other(i, games) not in on]:
            games[i] = replace(games[i], stop=games[_other(i, games)].stop)
            on.discard(i)
        live = [i for i in live if i in on]
        if not advised:
            return live
        asked = [filled(act, task=tasks[i], log=log_of(games[i], advice=False), strategy=games[i].reply) for i in live]
        said = replies_by(run, actor, [(Message("user", text),) for text in asked], run.max_new, heat)
        done = {i: reply.text.strip() if isinstance(reply, Reply) else "" for i, reply in zip(live, said, strict=True)}
        for i in live:
            own = inside[i]["inside"]
            told = {**own, "other": done[_other(i, games)]} if games[i].tag else own
            inside[i] = {"inside": told, "done": done[i]}
        return live

    play(acted(env=env), episodes, states, run, Sampling(run.max_new, temperature), turns, together=acts)
    groups: dict[tuple[int, str], Group] = {}
    for place, ((_, _, side), t) in enumerate(zip(rows, episodes, strict=True)):
        groups.setdefault((_problem_at(place, both, n), side), []).append(t)
    return list(groups.values())


def _other(i: int, games: Sequence[Trajectory]) -> int:
    """The row of the other side of a game: the sides stand side by side, the first one first."""
    return i + 1 if games[i].tag == SIDES[0] else i - 1


def _problem_at(place: int, both: Sequence[bool], n: int) -> int:
    ends = np.cumsum([n * (2 if two else 1) for two in both])
    return int(np.searchsorted(ends, place, side="right"))


def task_of(problem: Problem, side: str) -> str:
    """What a side reads: the question, and its own goal where the row has goals."""
    goals = list_of(problem.meta.get("goals")) or []
    return f"{problem.question}\nYour goal: {goals[SIDES.index(side)]}" if side and len(goals) == 2 else problem.question


def log_of(t: Trajectory, advice: bool) -> str:
    """What was done and answered, a turn after the other, numbered from 0;  advice: with the strategies."""
    lines: list[str] = []
    number = -1
    for turn in t.turns[1:]:
        number += turn.author is not None
        if turn.author is None:
            lines.append(turn.text)
        elif advice:
            lines.append(f"Turn {number}, strategy: {turn.text.strip()}")
    return "\n".join(lines)


# ---- what a turn is paid ---------------------------------------------------------------------------------------------


def read_judgement(text: str, turns: int) -> tuple[set[int], float | None]:
    """The turns that a judge calls critical, and the goal's score; nothing and None where it cannot be read."""
    found = first_json(text)
    said = found[0] if found and isinstance(found[0], dict) else {}
    marked = {i for x in list_of(said.get("indexes")) or [] if (k := number_of(x)) is not None and 0 <= (i := int(k)) < turns}
    return marked, number_of(said.get("score"))


@reward(over="groups", steps=True)
def strategy_rewards(
    groups: list[Group], run: Run, *, judge: str = "", paid: bool = True, scale: PositiveFloat = 1.0, max_new: PositiveInt = 512,
    ask: str = JUDGE,
) -> list[list[Any]]:  # fmt: skip
    """1 for each turn that the judge marks, or else, at the last turn, how far the goal was reached, divided by `scale`.

    judge: openai:URL#NAME or a model of the run; "": nothing is marked.  paid: the goal is what the environment paid in all; else
    the judge says it, from 0 to 10, and there is no verdict where it does not. Logged: marked, the share of turns.
    """
    rows = [t for group in groups for t in group]
    earned = [sum(pay for _, pay in t.paid) for t in rows]
    told = [f"The goal was reached to this degree: {x:g}.\n" if paid else "" for x in earned]
    more = "" if paid else ', "score": from 0, not at all, to 10, fully reached'
    asked = [
        filled(ask, task=task_of(t.problem, t.tag), log=log_of(t, advice=True), score=score, ask=more)
        for t, score in zip(rows, told, strict=True)
    ]
    said = replies_by(run, judge, [(Message("user", text),) for text in asked], min(max_new, run.max_new * 8)) if judge else []
    texts = [reply.text if isinstance(reply, Reply) else "" for reply in said] or [""] * len(rows)
    found = [read_judgement(text, len(t.ends)) for text, t in zip(texts, rows, strict=True)]
    run.log("marked", sum(len(m) for m, _ in found) / max(1, sum(len(t.ends) for t in rows)))
    scores = iter([
        _steps(t, marked, x if paid else judged, scale) for t, x, (marked, judged) in zip(rows, earned, found, strict=True)
    ])  # fmt: skip
    return [[next(scores) for _ in group] for group in groups]


def _steps(t: Trajectory, marked: set[int], goal: float | None, scale: float) -> Any:
    if goal is None or not t.ends:
        return Score(None, why="the judge does not say how far the goal was reached" if t.ends else "no turn")
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
