"""Agent-R: the agent learns to turn around where it first goes wrong, from its own bad episodes, each spliced with a good one.

    tree search -> episodes;    good: value > alpha;    a bad one beside it: value < that of the good one - beta
    the agent judges the actions of the bad one, in turn: good, uncertain or bad;    t': the first bad one (the last, if none is)
    learnt: bad actions up to t' (read, not learnt) | reflection | the good actions after those that both have in common
    loss = -mean log pi over reflections and good actions, of such episodes and of good ones

Imitating good episodes alone never shows how to get back. Correcting at the end comes too late, and what is an error depends on
what the agent can see by now: it looks for it itself, and again after every update.

Yuan et al. 2025, arXiv:2501.11425, by its abstract, and the released code (ByteDance-Seed/Agent-R, by the fork
zerosurplus/Agent-R): path_collection.py (3998653) pairs, cuts, splices and masks so; mcts_utils (67a2dd3) has the prompt of the
judgement, the reflections, the coefficient .25 of the search and values without a discount. There the reflection is a reply of its
own, "Action: wait", answered "ok."; --wait "ok." is that. Without it, it stands before the first good action: an environment that
knows of no waiting would take it for an action. After each new action an episode is played to its end, which the released search
does not do. (inferred): alpha, beta, how much is searched, and "Go on." where a bad episode ends without an answer. One round is
one step here: the tree is that of the present weights.

Any environment of text whose state is plain data: --env FILE.py:NAME.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Group, Message, Problem, Recipe, Run, Sampling, Trajectory, Turn, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.rejection_sampling import rejection_sampling
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.episode_tree import episode_tree
from rewardlab.rollouts.interactive import go_on, interactive
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.text.filled import filled

REFLECTIONS = (
    "I realize my approach was flawed. I need to revise it.",
    "I took the wrong steps. I need to identify the right path.",
    "My actions were incorrect. I must adjust my strategy.",
    "I see an error in my actions. I need to fix it.",
    "I misunderstood the situation. Time to reassess.",
    "My decision was wrong. I should reevaluate.",
    "I went off course. I need to steer back on track.",
    "I recognize my mistake. Let's find a better solution.",
    "My judgment was incorrect. I need to rethink it.",
    "I made an error. I must determine how to correct it.",
)
"""The first ten of the released ones, of which the code takes one at random."""
JUDGE = (
    "You verify a log of an agent that interacts with an environment to solve a task. Is the current action good (it helps "
    "greatly), bad (it does great harm) or uncertain (neither, or it cannot be told yet)?\n\nTask: {task}\n{log}\n"
    "Current action: {action}\n"
    "Current observation: {answer}\n\nGive reasons first, then write: Judgement: <Good or Bad or Uncertain>"
)
AFTER = "Go on."


# ---- episodes as what was done and answered --------------------------------------------------------------------------

Steps = list[tuple[list[Turn], Turn | None]]
"""Each action, as the turns that it was sampled in, and what it was answered; None after the last."""


def steps_of(t: Trajectory) -> Steps:
    """The actions of an episode and their answers, after its prompt."""
    steps: Steps = []
    for turn in t.turns[1:]:
        if turn.author is not None and (not steps or steps[-1][1] is not None):
            steps.append(([turn], None))
        elif turn.author is not None:
            steps[-1][0].append(turn)
        elif steps:
            steps[-1] = (steps[-1][0], turn)
    return steps


def action_of(step: tuple[list[Turn], Turn | None]) -> str:
    return "".join(turn.text for turn in step[0])


def in_common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many actions two episodes have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


# ---- where it went wrong ---------------------------------------------------------------------------------------------


def is_bad(judgement: str) -> bool:
    """Whether a judgement calls an action bad: as released, what says neither good nor uncertain does."""
    said = judgement.rpartition("Judgement:")[2].lower()
    return "good" not in said and "uncertain" not in said


def first_errors(episodes: Sequence[Trajectory], run: Run, ask: str = JUDGE) -> list[int]:
    """The number of actions of each episode up to the first that the policy calls bad; all of them where it calls none so.

    Episodes are judged side by side, an action at a time. A prompt that does not fit the context says nothing against the action.
    """
    steps = [steps_of(t) for t in episodes]
    found, live = [len(s) for s in steps], [i for i, s in enumerate(steps) if s]
    at = 0
    while live:
        asked = [episodes[i].problem.reworded(_question(episodes[i].problem, steps[i], at, ask)) for i in live]
        read = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
        fits = [k for k, t in enumerate(read) if len(t) + run.max_new <= run.policy.context]
        said = run.policy.extend([read[k] for k in fits], Sampling(run.max_new), run.rng("judgements")) if fits else []
        bad = {live[k] for k, t in zip(fits, said, strict=True) if is_bad(t.reply)}
        found = [at + 1 if i in bad else n for i, n in enumerate(found)]
        at += 1
        live = [i for i in live if i not in bad and at < len(steps[i])]
    return found


def _question(problem: Problem, steps: Steps, at: int, ask: str) -> str:
    log = [f"Action: {action_of(s)}\nObservation: {s[1].text if s[1] else ''}" for s in steps[:at]]
    action, answer = action_of(steps[at]), steps[at][1]
    return filled(ask, task=problem.question, log="\n".join(log), action=action, answer=answer.text if answer else "")


# ---- episodes to learn from ------------------------------------------------------------------------------------------


def pairs_of(group: Group, values: Sequence[float | None], alpha: float, beta: float) -> list[tuple[Trajectory, Trajectory]]:
    """(good, bad) episodes of a problem: the good one worth more than alpha, and more than beta above the bad one."""
    worth = [(t, v) for t, v in zip(group, values, strict=True) if v is not None]
    return [(a, b) for a, v in worth for b, w in worth if v > alpha and v - w > beta]


def spliced(bad: Trajectory, good: Trajectory, upto: int, reflection: str, wait: str, run: Run) -> Trajectory:
    """The bad episode up to that action, the reflection, and the good one from where it parts from what was kept.

    What the policy did badly is read, and not learnt from.
    """
    kept, after = steps_of(bad)[:upto], steps_of(good)
    after = after[in_common([action_of(s) for s in kept], [action_of(s) for s in after]) :]
    read = [turn for did, answer in kept for turn in (*did, *([answer] if answer is not None else []))]
    # what an episode ended with has no ids, since nobody read it
    read, last = (read[:-1], read[-1].text) if read and not len(read[-1].ids) else (read, "")
    row = replace(bad, turns=(bad.turns[0], *(replace(turn, author=None, reward=None) for turn in read)), stop=None, steps=())
    if kept and (last or kept[-1][1] is None):
        row = _told(row, last or AFTER, run)
    if wait:
        (row,) = run.policy.write([row], [f"Thought: {reflection}\nAction: wait"])
        row = _told(row, wait, run)
    for number, (did, answer) in enumerate(after):
        text = action_of((did, answer))
        (row,) = run.policy.write([row], [text if wait or number else f"{reflection}\n{text}"])
        if answer is not None and number < len(after) - 1:
            row = _told(row, answer.text, run)
    return row


def _told(row: Trajectory, text: str, run: Run) -> Trajectory:
    (row,) = run.policy.read([replace(row, stop=None)], [(Message("user", text),)])
    return row


@rollout(rows=lambda revisions, goods, **_: revisions + goods)
def revised(
    problems: list[Problem], run: Run, *, env: Environment, by: Reward, iterations: PositiveInt = 8, branch: PositiveInt = 4,
    turns: PositiveInt = 6, alpha: float = 0.5, beta: NonNegativeFloat = 0.2, revisions: NonNegativeInt = 2,
    goods: NonNegativeInt = 2, timely: bool = True, wait: str = "", reflections: tuple[str, ...] = REFLECTIONS,
) -> list[Group]:  # fmt: skip
    """At most so many spliced episodes of each problem (`revisions`), and so many different good ones (`goods`), to be imitated.

    Logged: good, bad, the shares of problems with such episodes;  cut, the mean share of a bad episode before the reflection.
    Where nothing is found, there is nothing to learn in the step: its rows hold prompts alone.
    """
    searched = {"iterations": iterations, "branch": branch, "turns": turns, "explore": 0.25, "gamma": 1.0, "choose": "untried"}
    groups = episode_tree(env=env, score=by, **searched)(problems, run)
    values = [[s.total for s in row] for row in by(groups, run)]
    rngs = [random.Random(seed_of("agent_r", run.seed, run.moment, p.key)) for p in problems]
    pairs = [pairs_of(group, row, alpha, beta) for group, row in zip(groups, values, strict=True)]
    chosen = [pair for rng, found in zip(rngs, pairs, strict=True) for pair in rng.sample(found, min(revisions, len(found)))]
    cuts = first_errors([bad for _, bad in chosen], run) if timely else [len(steps_of(bad)) for _, bad in chosen]
    words = [random.Random(seed_of(run.seed, run.moment, i)).choice(reflections) for i in range(len(chosen))]
    rows = [spliced(bad, good, n, said, wait, run) for (good, bad), n, said in zip(chosen, cuts, words, strict=True)]
    worth = [zip(group, row, strict=True) for group, row in zip(groups, values, strict=True)]
    good = [_distinct([t for t, v in found if v is not None and v > alpha]) for found in worth]
    # what an episode ended with was read by nobody
    rows += [replace(t, turns=tuple(x for x in t.turns if len(x.ids))) for found in good for t in found[:goods]]
    run.log("good", float(np.mean([bool(found) for found in good])))
    run.log("bad", float(np.mean([bool(found) for found in pairs])))
    if chosen:
        run.log("cut", float(np.mean([n / max(1, len(steps_of(bad))) for n, (_, bad) in zip(cuts, chosen, strict=True)])))
    fitting = [[t] for t in rows if len(t) <= run.policy.context]
    return fitting or [[t] for t in run.policy.read([Trajectory(p) for p in problems[:1]], [p.prompt for p in problems[:1]])]


def _distinct(episodes: Sequence[Trajectory]) -> list[Trajectory]:
    return list({tuple(map(action_of, steps_of(t))): t for t in episodes}.values())


# ---- what it is measured by ------------------------------------------------------------------------------------------


@measure
def recovery(problems: Sequence[Problem], run: Run, *, env: Environment, turns: PositiveInt = 6) -> dict[str, float]:
    """recovered: how often an episode is right by the task's verifier whose first action is what the policy does first in another
    problem;  pass@1: how often an episode is that is its own;  turns: its replies."""
    alone = interactive(env=env, n=1, turns=turns)
    found = episode_accuracy(rollout=alone)(problems, run)
    first = interactive(env=env, n=1, turns=1)(list(problems), run)
    # from the next problem: hardly ever of use here
    errors = [group[0].reply for group in (*first[1:], *first[:1])]
    openings = [env.start(p, seed_of(run.seed, "environment", run.moment, p.key, 0)) for p in problems]
    prompts = [p.prompt if said is None else (*p.prompt, said) for p, (said, _) in zip(problems, openings, strict=True)]
    rows = run.policy.write(run.policy.read([Trajectory(p) for p in problems], prompts), errors)
    rows, states = [replace(t, stop=None) for t in rows], [state for _, state in openings]
    go_on(env, rows, states, run, Sampling(run.max_new, 1.0, stop=env.stop), turns)
    scores = run.verify([[t] for t in rows], run)
    recovered = [float(s.value is not None and s.value >= 1.0) for row in scores for s in row]
    low, high = mean_interval(recovered)
    return {
        "recovered": float(np.mean(recovered)), "ci95_low": low, "ci95_high": high, "n": found["n"], "pass@1": found["pass@1"],
        "turns": found["turns"],
    }  # fmt: skip


# ---- the recipe ------------------------------------------------------------------------------------------------------


def agent_r(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", iterations: int = 8, branch: int = 4,
    turns: int = 6, alpha: float = 0.5, beta: float = 0.2, revisions: int = 2, goods: int = 2, timely: bool = True, wait: str = "",
    reflections: tuple[str, ...] = REFLECTIONS, problems: int = 8,
) -> Recipe:  # fmt: skip
    """env, corpus: what is played (`tools`).  iterations, branch, turns: of the search (`episode_tree`).  alpha, beta: what is
    good, and how far a bad episode is below it.  revisions, goods: episodes of either kind, a problem.  timely: False corrects at
    the end of a bad episode.  wait, reflections: as above.  problems: of a step."""
    base = base or rejection_sampling()
    env, by = tools(env, corpus), base.reward or correct()
    searched = {"iterations": iterations, "branch": branch, "turns": turns}
    taken = {"alpha": alpha, "beta": beta, "revisions": revisions, "goods": goods}
    return base.but(
        rollout=revised(env=env, by=by, **searched, **taken, timely=timely, wait=wait, reflections=reflections),
        objective=imitate(),
        weighting=token_mean(),
        measure=recovery(env=env, turns=turns),
        problems=problems,
    )


fidelity = "core"
left_out = (
    "general conversations, which are mixed in; rounds of whole data sets, each with a higher alpha, from which a model is trained "
    "for three epochs; every pair, of which some are taken here; disasters, after which an episode is not corrected"
)
data = Data(
    answer="the gold answer",
    facts=Column("documents to search, texts or {title, text}; not read with --corpus or --env", optional=True),
    rows=[
        {"prompt": "Which sea does the river through Vienna end in? Search: ... or Answer: ...", "answer": "Black Sea",
         "facts": ["The Danube flows through Vienna.", "The Danube ends in the Black Sea."]},
        {"prompt": "Who directed Psycho? Search: ... or Answer: ...", "answer": "Alfred Hitchcock",
         "facts": ["Psycho is a film by Alfred Hitchcock of 1960."]},
        {"prompt": "What is the tallest mountain of Africa? Search: ... or Answer: ...", "answer": "Kilimanjaro",
         "facts": [{"title": "Kilimanjaro", "text": "The tallest mountain of Africa."}]},
    ],
)  # fmt: skip

check = Check(
    says="a policy that also learns from spliced episodes is right more often after a wrong first action than one that learns from "
    "its good episodes alone",
    versus="agent_r", task="facts:hops=2,error=0.5", measure="recovered", direction="higher", margin=0.05,
    settings={"reflections": ("Wrong.",), "turns": 5}, versus_settings={"revisions": 0, "goods": 4, "turns": 5}, problems=200,
    steps=15, guard=Within("pass@1", low=-0.05), fault=Within("recovered", high=0.6, says="right after a wrong first action"),
    tried="one development seed: 14% recover on either side, and 31 points fewer are right otherwise. The small policy cannot "
    "judge its actions, calls each first one bad, and so learns to begin again where it was right",
    finding="after a wrong first action 10% are right with spliced episodes and 21% without, of all questions 40% and 83%: a "
    "policy too small to judge its actions learns from splices to begin again where it was right",
)  # fmt: skip
baseline = "rejection_sampling"
