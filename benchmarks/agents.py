"""Episodes with a slow tool: rewardlab's, in which nobody waits for others, against loops that wait for each turn of the batch.

A policy replies in each of 32 episodes, 2 to 8 times as the tool decides, and a tool answers each reply after 0.2 to 2 seconds.
Both peers are rewardlab's own sampling in another order, so that the ratio is that of the order alone: `gathered` asks the tool for
the whole batch at once and goes on when the last answer has come (as asyncio.gather in trainers with asynchronous tools), `in-turn`
asks for one after another (as a loop over the batch does). Episodes a second of the clock, the orders one after another, the median
of `repeats`.

Two tools: `even`, any latency alike, and `quick`: 0.2 seconds, but 2 for one call in ten, as a search with a cache. Beside each
ratio is its `bound`, of a policy that takes no time: whoever waits for nobody still waits for the slowest episode of the batch. Of
an even tool that bound is below 2, whatever the policy does.

The policy is the small embedded one, whose replies take little beside the tool's; `run(model="smollm2")` is SmolLM2-135M, of which
sampling takes most of the time.

  rewardlab bench agents
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from _sides import Rows, embedded_model, in_own_process, main, row, smollm2_model

SHORTEST, LONGEST, SLOW = 0.2, 2.0, 0.1
FEWEST_TURNS = 2
TOOLS: dict[str, Callable[[random.Random], float]] = {
    "even": lambda rng: rng.uniform(SHORTEST, LONGEST),
    "quick": lambda rng: LONGEST if rng.random() < SLOW else SHORTEST,
}
"""The seconds that each tool takes for an answer."""


def run(*, model: str = "embedded", episodes: int = 32, turns: int = 8, max_new: int = 32, repeats: int = 3) -> Rows:
    folder = smollm2_model() if model == "smollm2" else embedded_model()["folder"]
    settings = {"model": folder, "episodes": episodes, "turns": turns, "max_new": max_new, "repeats": repeats}
    found = {tool: in_own_process(__file__, "orders", {**settings, "tool": tool}) for tool in TOOLS}
    kinds = [("gathered", "even"), ("gathered", "quick"), ("in-turn", "even")]
    about = {**settings, "model": model, "latency": [SHORTEST, LONGEST]}
    return [
        row(f"agents-{peer}-{tool}", found[tool]["ours"], found[tool][peer], "episodes/s", {**about, **found[tool]["about"]})
        for peer, tool in kinds
    ]


class Plan:
    """What the tool does in an episode: the seconds of each of its answers; after the last of them the episode ends."""

    def __init__(self, seed: int, turns: int, tool: str):
        rng = random.Random(seed)
        self.seconds = [TOOLS[tool](rng) for _ in range(rng.randint(FEWEST_TURNS, turns))]

    @property
    def whole(self) -> float:
        return sum(self.seconds)


def bounds(plans: list[Plan]) -> tuple[float, float]:
    """The seconds of waiting that are left where nobody waits for others, and where each turn of the batch is waited for."""
    turns = max(len(plan.seconds) for plan in plans)
    in_step = sum(max(plan.seconds[i] for plan in plans if len(plan.seconds) > i) for i in range(turns))
    return max(plan.whole for plan in plans), in_step


def orders(model: str, episodes: int, turns: int, max_new: int, repeats: int, tool: str) -> dict[str, Any]:
    from rewardlab.core import Message, Run, Sampling, Trajectory, ask, environment
    from rewardlab.models.load import load_policy
    from rewardlab.rollouts.interactive import play

    def begin(problem: Any, seed: int, **_: Any) -> tuple[None, list[float]]:
        return None, Plan(seed, turns, tool).seconds

    @environment(start=begin)
    def slow(state: list[float], turn: Any, *, waits: bool = False) -> tuple[Message, list[float]]:
        time.sleep(state[0])
        return Message("user", "The tool says: 42. Go on.", last=len(state) == 1), state[1:]

    policy = load_policy(model)
    problems = [ask(f"Question {i}: what does the tool say of {i}?") for i in range(episodes)]

    def seeds(seed: int) -> list[int]:
        return [1000 * seed + i for i in range(episodes)]

    def seconds(order: str, seed: int) -> float:
        env = slow(waits=order != "in-turn")
        rows = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        states = [env.start(p, s)[1] for p, s in zip(problems, seeds(seed), strict=True)]
        began = time.perf_counter()
        # whoever is asked about all episodes of a turn keeps them in step
        together = (lambda episodes, states, live, replied: live) if order == "gathered" else None
        play(env, rows, states, Run(policy, seed=seed, max_new=max_new), Sampling(max_new), turns, together)
        return time.perf_counter() - began

    seconds("ours", 0)
    # one after another takes minutes, and little depends on chance there
    peers = ("gathered", "in-turn") if tool == "even" else ("gathered",)
    taken: dict[str, list[float]] = {order: [] for order in ("ours", *peers)}
    for seed in range(1, repeats + 1):
        for order in taken if seed == 1 else ("ours", "gathered"):
            taken[order].append(seconds(order, seed))
    rates = {order: episodes / statistics.median(times) for order, times in taken.items()}
    waits = [bounds([Plan(s, turns, tool) for s in seeds(seed)]) for seed in range(1, repeats + 1)]
    bound = statistics.median(in_step / apart for apart, in_step in waits)
    times = {order: [round(t, 2) for t in times] for order, times in taken.items()}
    return {**rates, "about": {"tool": tool, "bound_of_gathered": round(bound, 2), "seconds": times}}


if __name__ == "__main__":
    main(run, {"orders": orders})
