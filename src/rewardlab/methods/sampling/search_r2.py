"""Search-R2: the policy as its own refiner accepts a search episode, or cuts it before the first flawed turn and resumes there.

    pi_mix(y) = accept(y) pi(y) + sum over y', k of pi(y') cut(k | y') pi(y | y'_<k),     y'_<k: the k - 1 turns that are kept
    r = right (1 + useful),    useful: share of the search results that are of use;    GRPO on episodes and on the refiner's words

One bad search early leads all that follows astray. Sampling the episode anew throws its good turns away as well; to cut where it
first goes wrong keeps them. The refiner is paid what its episode earned in the end, so that it learns to diagnose by the outcome.

He et al. 2026, arXiv:2602.03647, after the text of v1 (no code was found): the product in r, one refinement, five episodes, the
reward of the episode for the words of the refiner too, the kept turns that learn with the new ones, and a test without the
refiner. Ours: that a result is of use which holds a supporting document not read before, where the paper asks a language model;
accept and cut are one reply of words, "Accept" or "Cut: k", where the paper has a discriminator with a threshold and a trimmer.
What the refiner says is a row of its own, with the mean over its own tokens; there it is one row with its episode.
`where="chance"` cuts the same episodes before a random turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Group, Problem, Recipe, Run, Sampling, Score, Scores, Trajectory, measure, rollout, seed_of
from rewardlab.core.episode import place_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.envs.search import search, tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import interactive, play
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.refining import QUESTION, REFINES, cut_of, to_refine

# ---- What an episode earned, for the refiner that accepted or cut it too; and how much of what it read was of use ----


@reward(over="groups")
def of_result(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """The reward `inner` of episodes; the refiner's replies that follow them (`repaired`) get their episode's reward.

    No verdict for a refiner whose episodes are not there, or have none.
    """
    scores = iter(inner([group for group in groups if not _refines(group)], run))
    made: Scores = []
    earned: dict[str, dict[tuple[int, ...], Score]] = {}
    for group in groups:
        if _refines(group):
            found = earned.get(group[0].problem.meta[REFINES], {})
            made.append([_same(found.get(t.path)) for t in group])
            continue
        row = next(scores)
        if group:
            # of a problem that comes twice, a refiner's replies are about the episodes before them
            earned[group[0].problem.key] = {t.path: score for t, score in zip(group, row, strict=True)}
        made.append(row)
    return made


def _refines(group: Group) -> bool:
    return bool(group) and REFINES in group[0].problem.meta


def _same(score: Score | None) -> Score:
    if score is None or score.total is None:
        return Score(None, why="its episode has no verdict")
    return Score(score.total, why="what its episode earned")


@reward
def useful_results(trajectory: Trajectory, *, column: str = "supporting") -> Score:
    """The share of an episode's retrieved messages with a new document of this column. 0 where it read none, and where the problem
    has no such list: then its answer alone is paid.
    """
    given = trajectory.problem.meta.get(column)
    wanted = [_text(x) for x in (given if isinstance(given, tuple) else list_of(given) or ())]
    if not wanted:
        return Score(0.0, why=f"the problem has no list {column!r}")
    first = next((i for i, turn in enumerate(trajectory.turns) if turn.author is not None), len(trajectory.turns))
    read = [turn.text for turn in trajectory.turns[first:] if turn.author is None and len(turn.ids)]
    left, useful = set(wanted), 0
    for text in read:
        # a search may show a document of several lines in one
        shown = " ".join(text.split())
        found = {document for document in left if " ".join(document.split()) in shown}
        useful += bool(found)
        left -= found
    return Score(useful / len(read) if read else 0.0, why=f"{useful} of {len(read)} results")


def _text(document: Any) -> str:
    return str(document.get("text", "")) if isinstance(document, dict) else str(document)


# ---- Episodes that are cut before their first wrong turn, and gone on with from there --------------------------------


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


# ---- the recipe ---------------------------------------------------------------------------------------------------------

Where = Literal["policy", "chance", "never"]


@measure
def repaired_accuracy(problems: list[Problem], run: Run, *, env: Environment, n: int = 4, turns: int = 6) -> dict[str, float]:
    """pass@1 of the same first episodes: as they are, as the policy repairs them, and cut at random where the policy cuts.

    as_it_was, repaired, at_random; and gained, lost: the shares of all episodes that the policy's repair turned right, and wrong.
    """
    right = {}
    for where in ("never", "policy", "chance"):
        # the same random numbers: the first attempts are the same three times
        aside = run.for_evaluation()
        groups = [g for g in repaired(env=env, n=n, turns=turns, where=where)(problems, aside) if g[0].tag != "refine"]
        right[where] = [s.value is not None and s.value >= 1.0 for row in aside.verify(groups, aside) for s in row]
    count = len(right["never"])
    before, after, random = (sum(right[where]) / count for where in ("never", "policy", "chance"))
    pairs = list(zip(right["never"], right["policy"], strict=True))
    return {
        "repaired": after, "as_it_was": before, "at_random": random, "n": float(count),
        "gained": sum(b and not a for a, b in pairs) / count, "lost": sum(a and not b for a, b in pairs) / count,
    }  # fmt: skip


def search_r2(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 6,
    where: Literal["policy", "chance", "never"] = "policy", useful: float = 1.0, column: str = "supporting",
    question: str = QUESTION,
) -> Recipe:  # fmt: skip
    """env, corpus: what is searched (`tools`), by default the column facts.  n: episodes of a question; None: as many
    as the base has, or else 5.  turns: the most that one may have.  where: who decides where to cut, as in `repaired`.  useful:
    weight of the process reward, 0 for none.  column: of the documents.  question: what the refiner reads, with {question} and
    {turns}.
    """
    base = base or grpo(n=n or 5)
    play: dict[str, Any] = {"env": tools(env, corpus), "turns": turns}
    hot = base.sampling_settings.get("temperature", 1.0)
    right = base.reward or correct()
    paid = right * (1 + useful * useful_results(column=column)) if useful else right
    return base.but(
        # no filter of the base stays: it would judge the refiner's replies as answers
        rollout=repaired(n=n or base.rows_per_problem, temperature=hot, **play, where=where, question=question),
        reward=of_result(inner=paid),
        measure=episode_accuracy(rollout=interactive(n=1, **play)),
    )


fidelity = "core"
left_out = (
    "a language model that says which results are of use (here the column `supporting` does), a discriminator with a "
    "threshold and a trimmer (here one reply of words), and the KL"
)
data = Data(
    answer="the gold answer",
    supporting=Column(
        "the documents that answer the question, a list of texts or of {title, text}; without it only the answer is paid",
        optional=True,
        setting="column",
    ),
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    idle={"supporting": "does not pay for what searches find: only the answer is paid"},
    rows=[
        {
            "prompt": "In which city was the composer of Fidelio born?",
            "answer": "Bonn",
            "facts": ["Fidelio is an opera by Beethoven.", "Beethoven was born in Bonn.", "Mozart was born in Salzburg."],
            "supporting": ["Fidelio is an opera by Beethoven.", "Beethoven was born in Bonn."],
        },
        {
            "prompt": "What is the capital of the country where Nokia was founded?",
            "answer": "Helsinki",
            "facts": ["Nokia was founded in Finland.", "The capital of Finland is Helsinki."],
            "supporting": ["Nokia was founded in Finland.", "The capital of Finland is Helsinki."],
        },
        {"prompt": "Which ocean lies west of Portugal?", "answer": "Atlantic", "facts": ["Portugal lies on the Atlantic Ocean."]},
    ],
)

claim = Claim(
    says="episodes that the refiner cuts where it finds them wrong end right oftener than the same ones cut at random",
    versus=None, task="repairs:misjudged=0.0", measure="repaired", direction="higher", margin=0.03, against="at_random",
    settings={"lr": 1e-4}, by=repaired_accuracy(env=search()), problems=200, steps=30,
    fault=Within("as_it_was", high=0.7, says="share of first episodes that end right"), learns=None,
    tried="misjudged=0.2: .44 repaired and .45 at random, of .38, before any update; at 3e-4 first episodes end right in .84 after "
    "30. Here .52 and .53 of .44 before, .70 and .68 of .61 after 30 updates at 1e-4 (one seed, so that the margin is by no rule)",
    finding="first episodes end right in 66%; cut where the refiner says 74%, cut at random 72%. Most of the repair is the second "
    "try: the place of the cut adds 1.4 points over twelve pairs, half of what the check asks for",
)  # fmt: skip
baseline = "grpo"
