"""Endless Terminals: which tasks are trained on, and what an episode earns."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.agents.endless_terminals import endless_terminals, only_solvable, solvable
from rewardlab.worlds.terminals import KINDS, terminals


def problems(*solved):
    return [ask(f"{i}?", **({} if s == "unknown" else {"solved": s})) for i, s in enumerate(solved)]


@rollout
def named(of, run):
    return [[Trajectory(p)] for p in of]


def kept(found):
    return [group[0].problem.question for group in found]


def test_what_nobody_has_solved_is_passed_over_and_the_unknown_is_not():
    assert [p.question for p in solvable(problems(0, 3, "unknown", 0.0, 1, "0"), "solved")] == ["1?", "2?", "4?"]


def test_further_tasks_take_the_place_of_those_passed_over():
    # two of four stay; two more are asked for, of which one stays; then one more
    more = iter([problems(0, 0, 0, 0, 0, 7)[4:], problems(0, 0, 0, 0, 0, 0, 2)[6:]])
    run = Run(policy=None)
    run.more_problems = lambda n: next(more)
    assert kept(only_solvable(inner=named())(problems(0, 1, 0, 1), run)) == ["1?", "3?", "5?", "6?"]
    assert run.metrics == {"skipped": 3}


def test_without_more_tasks_those_that_stay_are_played():
    run = Run(policy=None)
    assert kept(only_solvable(inner=named())(problems(0, 1), run)) == ["1?"]
    with pytest.raises(RewardlabError, match="of 2 tasks none was solved"):
        only_solvable(inner=named())(problems(0, 0), run)


def test_the_recipe():
    recipe = endless_terminals()
    assert recipe.rollout.settings["inner"].settings["env"].name == "terminal"
    assert recipe.rollout.rows_per_problem == 4
    assert recipe.update.epochs == 2
    assert endless_terminals(keep="").rollout.settings["turns"] == 8
    # a base that plays keeps its environment and measure
    stacked = registry.build("otc_po+endless_terminals")
    assert stacked.rollout.settings["inner"].settings["env"].name == "search"


@pytest.mark.slow
def test_tasks_of_the_world_are_solved_by_their_solutions_and_by_nothing_else():
    """Each kind in the sandbox: its tests fail at the start and after the confused command, and pass after the right one."""
    from rewardlab.envs.terminal import session_of
    from rewardlab.sandbox import ProgramRun, Sandbox
    from rewardlab.sandbox.shell import run

    try:
        Sandbox(commands=True).run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))
    task, seen = terminals(broken=0.5, test_size=1), {}
    for i in range(200):
        p = task.train[i]
        seen.setdefault((p.question.split()[0], p.meta["solved"] > 0), p)
    assert len(seen) == 2 * len({p.question.split()[0] for p in seen.values()})
    assert len({kind for kind, _ in seen}) >= len(KINDS) - 1
    for (_, whole), p in seen.items():
        start, right = session_of(p.meta["files"]), p.meta["solution"][0].removeprefix("<command>").removesuffix("</command>")
        verdicts = [run(start, command, p.meta["tests"]).passed for command in (None, p.meta["confused"], right)]
        assert verdicts == [False, False, whole], (p.question, verdicts)


def test_a_real_models_episode():
    """Replies as an instruct model writes them, played in the terminal of the template's first row."""
    from rewardlab.data.columns import Data

    row = Data.from_json(next(r for r in registry.rows() if r["name"] == "endless_terminals")["data"]).rows[0]
    p = ask(row["prompt"], **{k: v for k, v in row.items() if k != "prompt"})
    env = endless_terminals().rollout.settings["inner"].settings["env"]
    try:
        _, state = env.start(p, 0)
        turns = [Turn(None, np.zeros(1, np.int64))]
        for reply in (
            "I'll look at the file first.\n\n<command>head -3 sales.csv</command>",
            "Now I sum the north.\n\n```bash\nawk -F, '$1==\"north\"{s+=$2} END{print s}' sales.csv > north.txt\n```",
            "Done.\n<action>done</action>",
        ):
            said = Turn("policy", np.zeros(1, np.int64), text=reply)
            message, state = env(state, said)
            turns += [said] + (
                [] if message is None else [Turn(None, np.zeros(1, np.int64), text=message.text, reward=message.reward)]
            )
    except RewardlabError as problem:
        pytest.skip(str(problem))
    assert "north,10" in turns[2].text
    verifier = registry.verifier("final_state")
    assert [s.total for s in verifier([[Trajectory(p, tuple(turns), "end"), Trajectory(p, tuple(turns[:3]), "turns")]])[0]] == [
        1,
        0,
    ]
