"""ReTool: what is paid, what is trained on, and what its measure counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Outputs, Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import add_columns, collate
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.envs.search import search
from rewardlab.errors import RewardlabError
from rewardlab.methods.agents.retool import calls_where_hard, retool
from rewardlab.rewards.reward import reward

PROMPT = ask("2 ** 70?", "1180591620717411303424", large=True)


def episode(calls: int, last: str, problem=PROMPT) -> Trajectory:
    """`calls` pieces of code, each answered, and a last reply of 4 tokens: "+" is right, "?" has no verdict."""
    turns = [Turn(None, np.zeros(2, np.int64))]
    for _ in range(calls):
        turns += [said(3, "<code>2 ** 70</code>"), Turn(None, np.zeros(5, np.int64), text="<interpreter>\n1\n</interpreter>")]
    return Trajectory(problem, (*turns, said(4, last)), "end")


def said(n: int, text: str) -> Turn:
    return Turn("policy", np.zeros(n, np.int64), np.full(n, -1.0, np.float32), np.full(n, -1.0, np.float32), text)


@reward
def verify(trajectory):
    return Score(None, why="no verdict") if trajectory.reply == "?" else float(trajectory.reply == "+")


def totals(recipe, *rows):
    return [s.total for s in recipe.reward([list(rows)], Run(policy=None, verify=verify()))[0]]


def test_right_pays_one_and_wrong_costs_one_whatever_was_called():
    rows = [episode(k, last) for k in (0, 2) for last in ("+", "-", "?")]
    assert totals(retool(), *rows) == [1.0, -1.0, None, 1.0, -1.0, None]


def test_the_released_recipe_pays_calls_of_wrong_episodes():
    # -1 + 0.1 each, at most -0.6; a right one earns 1
    rows = [episode(k, last) for last in "-+" for k in (0, 1, 3, 9)]
    assert totals(retool(calls=0.1), *rows) == pytest.approx([-1, -0.9, -0.7, -0.6, 1, 1, 1, 1])


def test_the_interpreters_tokens_have_no_gradient():
    """Of the loss to the log-probs: exactly 0 on what the interpreter said, and not 0 on both sides of it."""
    recipe, run = retool(), Run(policy=None, verify=verify())
    rows = [episode(1, "+"), episode(0, "-")]
    batch = collate([rows], recipe.reward([rows], run), torch.device("cpu"))
    batch = add_columns(batch, recipe.objective.needs, run, 1000)
    # advantages that are nowhere 0, so that no credit hides what the loss lets through
    batch.credit = torch.full_like(batch.reward, 2.0)
    weigh(batch, recipe.objective, recipe.weighting)
    logprobs = torch.full_like(batch.reward, -1.0, requires_grad=True)
    sum(losses_of(recipe.objective, Outputs(logprobs), batch, run).values()).backward()
    # 2 of the prompt, 3 of the call, 5 of the interpreter, 4 of the answer; d(-2 ratio)/dlogprob = -2, over 3 + 4 + 4 decisions
    wanted = [0.0] * 2 + [-2 / 11] * 3 + [0.0] * 5 + [-2 / 11] * 4
    assert logprobs.grad[0].tolist() == pytest.approx(wanted)


def test_it_stacks_on_group_methods_and_keeps_their_episodes():
    recipe = registry.build("grpo+retool", {"grpo.n": 16})
    assert recipe.rollout.settings["n"] == 16
    assert recipe.rollout.settings["turns"] == 8
    assert recipe.measure.settings["rollout"].settings["env"].name == "interpreter"
    assert not any("less_kl" in str(part) for part in retool().credit.walk())
    assert retool().rollout.settings["n"] == 1
    assert retool(env=search()).rollout.settings["env"].name == "search"
    # a base with tools of its own keeps them
    assert registry.build("otc_po+retool").rollout.settings["env"].name == "search"


def test_it_keeps_the_filter_and_the_temperature_of_its_base():
    recipe = registry.build("dapo+retool", {"dapo.n": 4})
    assert recipe.rollout.name == "solved_between"
    assert (recipe.rollout.innermost.name, recipe.rollout.innermost.settings["n"]) == ("interactive", 4)
    assert registry.build("grpo+retool", {"temperature": 0.7}).rollout.settings["temperature"] == 0.7
    # tools of a base are found within its filter too
    assert retool(registry.build("otc_po+dapo")).rollout.innermost.settings["env"].name == "search"
    with pytest.raises(RewardlabError, match="this one is recorded"):
        registry.build("sft+retool")


def test_calls_are_counted_by_how_hard_problems_are():
    hard, easy = (ask(f"{side}?", "4", large=side) for side in (True, False))

    @rollout
    def written(problems, run):
        counts = iter([1, 1, 2, 0])
        return [[episode(next(counts), last, p) for last in "+-"] for p in problems]

    run = Run(policy=None, verify=verify())
    got = calls_where_hard(rollout=written(), column="large")([hard, easy], run)
    # hard: both episodes call; easy: one of two
    assert (got["hard"], got["easy"], got["when"], got["calls"], got["pass@1"]) == (1.0, 0.5, 0.5, 0.75, 0.5)


def test_a_real_models_episode_is_judged_by_its_last_reply():
    math = registry.verifier("math")
    problem = ask("How many primes are below 1000?", "168")
    turns = (
        Turn(None, np.zeros(2, np.int64)),
        said(3, "I count them with a sieve.\n\n<code>\n```python\nn = 1000\nprint(168)\n```\n</code>"),
        Turn(None, np.zeros(2, np.int64), text="<interpreter>\n168\n</interpreter>"),
        said(4, "The sieve finds 168 primes.\n\n**Answer:** $\\boxed{168}$"),
    )
    run = Run(policy=None, verify=math)
    whole, cut = Trajectory(problem, turns, "end"), Trajectory(problem, turns[:3], "turns")
    assert [s.total for s in retool().reward([[whole, cut]], run)[0]] == [1.0, -1.0]
