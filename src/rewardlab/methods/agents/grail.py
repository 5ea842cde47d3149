"""GRAIL: an agent explores a knowledge graph, and each of its choices is judged by the shortest way that was found to the answer.

    <explore>entity</explore>: all triples around it;   <choose>relation; ..</choose>: those to keep;   <answer>..</answer>
    way: the shortest from a start entity to an answer in what right episodes have seen
    precision of a turn:  1 for an entity of the way, not explored before;  the share of the way's relations there newly chosen
    conciseness of a turn:  -1 for any other exploration;  - the share of the chosen relations that are not of the way, or not new
    stage 1: imitate the ways, written as episodes;    stage 2: GRPO, each turn by its own precision, conciseness, or right answer

Who explores a graph at random sometimes gets to the answer, but mostly by detours. Cut to the shortest way, such episodes teach
what the actions are for; and a reward for each turn says which of them were needed, where the answer alone comes late and says
little. What is missed and what is superfluous are separate rewards: too little and too much retrieved are different faults.

Chang et al. 2025, arXiv:2508.05498 (the text of v1: actions, synthesis, shortest path refinement, GRPO with a KL of .001 and a clip
range of .5, SFT at 1e-4 and RL at 1e-5; the released code could not be read). There GPT-4 explores, --explorer openai:URL#NAME,
here the policy itself unless told otherwise; and it also labels each action of the refined ways, which the way itself does here.
(inferred): both rewards' numbers and weights, the abstract naming what they are for; that the "value clipping range" of .5 is the
policy's; that turns are credited alone (`gamma` 0), as their single decisions are learnt from; that a shorter way which is found
later counts from then on; and that a step of stage 1 without any way is one of stage 2.

The graph: --graph FILE, .tsv of head, relation, tail or rows {"head", "relation", "tail"}; or each row's column `triples`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Environment,
    Group,
    Learner,
    Loop,
    Problem,
    Recipe,
    Rollout,
    Run,
    Trajectory,
    loop,
    rollout,
)
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.terms import each_term
from rewardlab.credit.turns import turn_to_go
from rewardlab.data.columns import Column, Data
from rewardlab.envs.knowledge_graph import Action, Triple, action_in, around, graph_of, knows, starts_of
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.text.answers import tidy
from rewardlab.text.replies import accepted
from rewardlab.worlds.kin import turns_told_apart, wandering

PATHS, EXPLORER = "grail.ways", "explorer"

# ---- the shortest way that was found ---------------------------------------------------------------------------------


def shortest_way(triples: Sequence[Triple], starts: Sequence[str], answers: Sequence[str]) -> list[Triple] | None:
    """The triples of the shortest way from a start to an answer, in either direction of each; None where there is none."""
    near, goals = around(tuple(triples)), {tidy(a) for a in answers}
    waiting: deque[tuple[str, list[Triple]]] = deque((tidy(s), []) for s in starts)
    seen = {at for at, _ in waiting}
    while waiting:
        at, way = waiting.popleft()
        if at in goals and way:
            return way
        for triple in near.get(at, []):
            other = tidy(triple[2]) if tidy(triple[0]) == at else tidy(triple[0])
            if other not in seen:
                seen.add(other)
                waiting.append((other, [*way, triple]))
    return None


def points_of(way: Sequence[Sequence[str]], starts: Sequence[str]) -> list[tuple[str, str]]:
    """(entity, relation) of each step of a way: where it is, and what it follows."""
    at = next((s for s in starts if way and tidy(s) in (tidy(way[0][0]), tidy(way[0][2]))), "")
    points = []
    for head, relation, tail in way:
        points.append((at, relation))
        at = tail if tidy(head) == tidy(at) else head
    return points


def remember_ways(groups: Sequence[Group], run: Run, graph: str) -> None:
    """Keep the shortest way that a right episode has seen, problem by problem, where it is shorter than the one that is known."""
    known = run.memory.setdefault(PATHS, {})
    for group, row in zip(groups, run.verdicts(list(groups)), strict=True):
        for t, verdict in zip(group, row, strict=True):
            # an environment of the user's own may have its graph where nobody else can look
            if verdict.value is None or verdict.value < 1.0 or not (graph or t.problem.meta.get("triples")):
                continue
            near = graph_of(t.problem, graph)
            explored = [a[1][0] for a in map(action_in, t.replies) if a and a[0] == "explore" and a[1]]
            seen = [triple for entity in explored for triple in near.get(tidy(entity), [])]
            way = shortest_way(seen, starts_of(t.problem), accepted(t.problem.answer))
            if way and len(way) < len(known.get(t.problem.key) or [None] * (len(way) + 1)):
                known[t.problem.key] = [list(triple) for triple in way]


# ---- stage 1: ways written as episodes -------------------------------------------------------------------------------


def actions_of(way: Sequence[Sequence[str]], starts: Sequence[str], answer: str) -> list[Action]:
    """What a way takes: at each of its points an exploration and a choice, and the answer in the end."""
    points = [step for at, relation in points_of(way, starts) for step in (("explore", (at,)), ("choose", (relation,)))]
    return [*points, ("answer", (answer,))]


def said_of(action: Action, replies: Sequence[str]) -> str:
    """The reply, of those that were sampled, that took an action, with its thoughts; or the action alone."""
    found = (r for r in replies if (done := action_in(r)) and _same(done, action))
    return next(found, f"<{action[0]}>{'; '.join(action[1])}</{action[0]}>")


def _same(a: Action, b: Action) -> bool:
    return a[0] == b[0] and [*map(tidy, a[1])] == [*map(tidy, b[1])]


@rollout(rows=lambda n, **_: n, across_problems=True)
def ways_written(
    problems: list[Problem], run: Run, *, env: Environment, n: PositiveInt = 8, turns: PositiveInt = 7, graph: str = "",
    writer: str = "policy",
) -> list[Group]:  # fmt: skip
    """The shortest way that is known to the answer of each problem as an episode to imitate, after n episodes of exploration.

    writer: the model of the run that explores. Its replies on the way are kept, with their thoughts. Logged: solved, the share of
    problems with a way. Where none has one, the rows of the step are prompts alone, which teach nothing.
    """
    explorer = replace(run, policy=run.model(writer))
    groups = interactive(env=env, n=n, turns=turns)(problems, explorer)
    remember_ways(groups, run, graph)
    rows = [_written(p, group, run, env) for p, group in zip(problems, groups, strict=True) if run.memory[PATHS].get(p.key)]
    run.log("solved", len(rows) / len(problems))
    fitting = [[t] for t in rows if len(t) <= run.policy.context]
    return fitting or [[t] for t in run.policy.read([Trajectory(p) for p in problems[:1]], [p.prompt for p in problems[:1]])]


def _written(problem: Problem, group: Group, run: Run, env: Environment) -> Trajectory:
    opening, state = env.start(problem, 0)
    prompt = problem.prompt if opening is None else (*problem.prompt, opening)
    (row,) = run.policy.read([Trajectory(problem)], [prompt])
    replies = [reply for t in group for reply in t.replies]
    for action in actions_of(run.memory[PATHS][problem.key], starts_of(problem), accepted(problem.answer)[0]):
        (row,) = run.policy.write([replace(row, stop=None)], [said_of(action, replies)])
        message, state = env(state, row.turns[-1])
        if message is not None:
            (row,) = run.policy.read([replace(row, stop=None)], [(message,)])
    return row


@loop(wraps="inner", first=("steps",))
def ways_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: NonNegativeInt, first: Rollout, scale: PositiveFloat = 10.0,
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Imitation of what `first` gives in the first steps, at `scale` times the learning rate, and the recipe where that is nothing;
    then the recipe, with a new optimiser and the policy so far as its reference."""
    if 0 < run.step == steps:
        ops.new_stage()
    early = run.step < steps
    if early:
        update = replace(recipe.update, lr=scale * recipe.update.rate, loss_kind="imitation")
        ops.standard_step(Recipe(rollout=first, objective=imitate(), weighting=token_mean(), update=update))
    if not early or not run.metrics.get("solved"):
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)


# ---- stage 2: each turn by its own rewards ---------------------------------------------------------------------------


@rollout(wraps="inner", across_problems=True)
def remembering(problems: list[Problem], run: Run, *, inner: Rollout, graph: str = "") -> list[Group]:
    """The episodes of `inner`, of which the right ones may show a shorter way."""
    groups = inner(problems, run)
    remember_ways(groups, run, graph)
    return groups


def judged(replies: Sequence[str], way: Sequence[Sequence[str]], starts: Sequence[str]) -> list[tuple[float, float]]:
    """(precision, conciseness) of each reply, where this is the way; (0, 0) of an answer."""
    points = [(tidy(at), tidy(relation)) for at, relation in points_of(way, starts)]
    explored: list[str] = []
    taken: set[tuple[str, str]] = set()
    found = []
    for action in map(action_in, replies):
        if action is None or not action[1]:
            found.append((0.0, -1.0))
        elif action[0] == "explore":
            entity = tidy(action[1][0])
            new = entity in [at for at, _ in points] and entity not in explored
            found.append((float(new), 0.0 if new else -1.0))
            explored.append(entity)
        elif action[0] == "choose":
            chosen = {tidy(r) for r in action[1]}
            wanted = {relation for at, relation in points if explored and at == explored[-1]}
            # what was chosen there already is kept, and to choose it again is superfluous
            added = {relation for relation in chosen & wanted if (explored[-1], relation) not in taken}
            found.append((len(added) / max(1, len(wanted)), -len(chosen - added) / len(chosen)))
            taken |= {(explored[-1], relation) for relation in added}
        else:
            found.append((0.0, 0.0))
    return found


@reward(over="groups", steps=True)
def precision(groups: list[Group], run: Run) -> list[list[Any]]:
    """What each turn adds to the way; 0 where none is known."""
    return _each_turn(groups, run, 0)


@reward(over="groups", steps=True)
def conciseness(groups: list[Group], run: Run) -> list[list[Any]]:
    """Minus what is superfluous in each turn; 0 where no way is known."""
    return _each_turn(groups, run, 1)


def _each_turn(groups: list[Group], run: Run, which: int) -> list[list[Any]]:
    known = run.memory.get(PATHS, {})

    def of(t: Trajectory) -> list[tuple[int, float]]:
        way = known.get(t.problem.key)
        worth = [pair[which] for pair in judged(t.replies, way, starts_of(t.problem))] if way else [0.0] * len(t.ends)
        return list(zip(t.ends, worth, strict=True))

    return [[of(t) for t in group] for group in groups]


# ---- the recipe ------------------------------------------------------------------------------------------------------


def grail(
    base: Recipe | None = None, *, env: Environment | None = None, graph: str = "", n: int | None = None, turns: int = 7,
    explorer: str = "", sft_steps: int = 20, precise: float = 1.0, concise: float = 0.5, gamma: float = 0.0, eps: float = 0.5,
    beta: float = 0.001,
) -> Recipe:  # fmt: skip
    """env, graph: what is explored, None and "": the rows' triples.  n, turns: episodes of a problem (None: the base's, or else
    8), and replies of an episode.  explorer: the model that explores in stage 1; "": the policy.  sft_steps: of stage 1.  precise,
    concise: weights of both rewards of turns.  gamma: of what later turns earn.  eps, beta: of GRPO, where no base says otherwise.
    """
    base = base or grpo(n=n or 8, eps=eps, beta=beta)
    env = knows(env, graph)
    asked = (Learner(EXPLORER, explorer, Recipe(), every=0),) if explorer not in ("", "policy") else ()
    play: dict[str, Any] = {"env": env, "turns": turns}
    file = str(env.settings.get("graph", ""))
    first = ways_written(**play, n=n or base.rows_per_problem, graph=file, writer=EXPLORER if asked else "policy")
    return base.but(
        rollout=remembering(inner=in_place_of_replies(base.required("rollout"), **play, n=n), graph=file),
        reward=(base.reward or correct()) + precise * precision() + concise * conciseness(),
        credit=each_term(chain=center() >> scale_by_std()) >> turn_to_go(gamma=gamma),
        loop=ways_first(steps=sft_steps, first=first, inner=base.loop) if sft_steps else base.loop,
        measure=episode_accuracy(rollout=interactive(**play, n=1)),
        also=(*base.also, *asked),
    )


fidelity = "reading"
left_out = (
    "labels of actions by GPT-4; a context from which what was not chosen is taken out, and an answer by another model from what "
    "is left (here the policy reads all that it was shown); single decisions as prompts"
)
data = Data(
    answer="the gold answer, an entity of the graph, or a list of them",
    triples=Column("the graph, a list of [head, relation, tail]; not read with --graph", optional=True),
    entities="the entities that the question names, a list",
    rows=[
        {"prompt": "In which country was the author of Faust born?", "answer": "Germany", "entities": ["Faust"],
         "triples": [["Faust", "author", "Goethe"], ["Goethe", "place of birth", "Frankfurt"], ["Frankfurt", "country", "Germany"],
                     ["Goethe", "place of death", "Weimar"]]},
        {"prompt": "Which films did the director of Psycho make?", "answer": ["Vertigo", "The Birds"], "entities": ["Psycho"],
         "triples": [["Psycho", "director", "Hitchcock"], ["Vertigo", "director", "Hitchcock"],
                     ["The Birds", "director", "Hitchcock"]]},
    ],
    verified_by="tagged_answer",
)  # fmt: skip

check = Check(
    says="of what turns do on random walks, precision and conciseness by ways found there tell more than the answer in the end: "
    "which of them follow what was asked for",
    versus=None, task="kin", measure="apart.process", direction="higher", margin=0.1, against="apart.outcome",
    model="untrained",
    by=turns_told_apart(rollout=remembering(inner=wandering(n=16)), process=precision() + conciseness()), problems=200, steps=1,
    fault=Within("apart.outcome", high=0.8, says="how well the answer tells turns apart, where 1 is always"),
    tried="two development seeds of 200 problems: .79 by turns, .52 by the answer",
    finding="the rewards of turns, by ways found on random walks, tell the turns that follow the question from others in 78% of "
    "pairs, the answer at the end in 52%. Both rewards are our reading of the paper",
)  # fmt: skip
baseline = "grpo"
