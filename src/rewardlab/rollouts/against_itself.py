"""Self-play: the policy as both players of a game."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Environment, Group, Problem, Run, Sampling, Trajectory, rollout, seed_of
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rollouts.interactive import play

PLAYERS = ("first player", "second player")
"""Tags of the rows of a game."""


@rollout(rows=lambda n, **_: 2 * n, groups=lambda **_: 2)
def against_itself(
    problems: list[Problem], run: Run, *, env: Environment, n: PositiveInt = 8, turns: PositiveInt = 10,
    temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """n parallel games of each problem, in which both players move at once: two groups, the first players and the second ones.

    env: the game as one player sees it, the same for both; in state["other"] it finds what the other said in this round. The rows
    of a game have the same `path`, and the tags of PLAYERS. A game ends for both where it ends for one.
    """
    rows = [(p, i, tag) for p in problems for i in range(n) for tag in PLAYERS]
    openings = [env.start(p, seed_of(run.seed, "environment", run.moment, p.key, i)) for p, i, _ in rows]
    states = [state for _, state in openings]
    if not all(isinstance(state, dict) and "other" in state for state in states):
        raise RewardlabError(f"{env.name} is no game of two players: its state has no entry 'other', for what the other says")
    prompts = [p.prompt if message is None else (*p.prompt, message) for (p, *_), (message, _) in zip(rows, openings, strict=True)]
    games = run.policy.read([Trajectory(p, path=(i,), tag=tag) for p, i, tag in rows], prompts)
    play(env, games, states, run, Sampling(run.max_new, temperature), turns, together=_exchange)
    return [games[i + player : i + 2 * n : 2] for i in range(0, len(games), 2 * n) for player in (0, 1)]


def _exchange(games: list[Trajectory], states: list, live: list[int], said: bool) -> list[int]:
    """Rows 2k and 2k + 1 are one game. Ends it for both where one has ended; tells each what the other said, if they have."""
    on = set(live)
    both = [i for i in live if i ^ 1 in on]
    for i in on - set(both):
        games[i] = replace(games[i], stop=games[i ^ 1].stop)
    for i in both if said else ():
        states[i] = {**states[i], "other": games[i ^ 1].reply}
    return both
