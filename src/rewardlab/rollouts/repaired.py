"""Episodes that are cut before their first wrong turn, and gone on with from there."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch

from rewardlab.core import Environment, Group, Problem, Run, Sampling, Trajectory, rollout, seed_of
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.core.episode import place_of
from rewardlab.rollouts.interactive import interactive, play
from rewardlab.text.refining import QUESTION, cut_of, to_refine


# a refiner's rows follow those that they are about
@rollout(rows=lambda n, **_: n, groups=lambda **_: 2)
def repaired(
    problems: list[Problem], run: Run, *, env: Environment, n: PositiveInt = 8, turns: PositiveInt = 4,
    temperature: NonNegativeFloat = 1.0, where: Literal["policy", "chance", "never"] = "policy", question: str = QUESTION,
) -> list[Group]:  # fmt: skip
    """n episodes of each problem as in `interactive`, each of which the policy then accepts or cuts before one of its replies: what
    came before stays, and it goes on from there. Beside the group of episodes one of the refiner's replies, tagged "refine".

    where: "chance": what the policy cuts is cut before a random reply instead; "never": nothing is cut, and nobody asked.
    question: what the refiner reads, with {question} and {turns}. An episode that leaves no room for it is accepted.
    Logged: cut, the share of episodes that are cut.
    """
    groups = interactive(env=env, n=n, turns=turns, temperature=temperature)(problems, run)
    if where == "never":
        return groups
    rows = [t for group in groups for t in group]
    asked = [to_refine(t.problem, t.replies, _messages(t), question) for t in rows]
    read = run.policy.read(
        [Trajectory(p, path=t.path, tag="refine") for p, t in zip(asked, rows, strict=True)], [p.prompt for p in asked]
    )
    sampling = Sampling(run.max_new, temperature)
    fits = [i for i, t in enumerate(read) if len(t) + run.max_new <= run.policy.context]
    said = dict(zip(fits, run.policy.extend([read[i] for i in fits], sampling, run.rng("rollout")), strict=True)) if fits else {}
    cuts = {i: k for i, t in said.items() if (k := cut_of(t.reply, len(rows[i].replies))) is not None}
    if where == "chance":
        cuts = {i: 1 + int(torch.randint(len(rows[i].replies), (), generator=run.rng("cut"))) for i in cuts}
    run.log("cut", len(cuts) / max(1, len(rows)))
    again = dict(zip(cuts, _again([(rows[i], k) for i, k in cuts.items()], run, env, sampling, turns), strict=True))
    done = [[again.get(i, rows[i]) for i in range(g * n, (g + 1) * n)] for g in range(len(groups))]
    refiners = [[said[i] for i in range(g * n, (g + 1) * n) if i in said] for g in range(len(groups))]
    return [group for pair in zip(done, refiners, strict=True) for group in pair if group]


def _messages(episode: Trajectory) -> list[str]:
    """What was read after the first reply."""
    first = next((i for i, turn in enumerate(episode.turns) if turn.author is not None), len(episode.turns))
    return [turn.text for turn in episode.turns[first:] if turn.author is None and len(turn.ids)]


def _again(cuts: list[tuple[Trajectory, int]], run: Run, env: Environment, sampling: Sampling, turns: int) -> list[Trajectory]:
    """Each episode up to its k-th reply, which is written anew with all that follows."""
    begun, states = [], []
    for t, k in cuts:
        at = [i for i, turn in enumerate(t.turns) if turn.author is not None][k - 1]
        # the seed of the first attempt: the environment answers what is kept as it did then
        _, state = env.start(t.problem, seed_of(run.seed, "environment", run.moment, t.problem.key, t.path[0]))
        kept = Trajectory(t.problem, path=t.path)
        for turn in t.turns[:at]:
            kept = kept.plus(turn)
            if turn.author is not None:
                _, state = env(state, turn, place_of(kept))
        begun.append(replace(kept, tag=t.tag))
        states.append(state)
    play(env, begun, states, run, replace(sampling, stop=env.stop), turns)
    return begun
