"""MaskSearch: learn search as retrieval-augmented prediction of masked spans, with a curriculum over the number of masks.

    RAMP   the mother of [mask 1] is [mask 2]: the agent searches, turn by turn, and ends with what each mask hides
    r      = share of the masks that it fills rightly, 0 if it states more spans than there are masks
             + form * [it ends with an answer of one span for each mask]
    level  = 1 + floor(max_masks * progress): a step learns from texts of at most so many masks, mostly of exactly so many

Questions that need several searches are few, and of one kind; texts are many, and a span of any text is such a question. After this
training the agent is trained on its task: rewardlab train dapo --task mine.jsonl --model RUN.

Wu et al. 2025, arXiv:2505.20285 (Alibaba-NLP/MaskSearch, b6ed99c: notes alone). RL by DAPO with an answer and a format reward
is the paper's. The answer reward is its token-level recall, by whole spans here; the paper found a model that judges each
answer harder to game: pay by a judge of your own. (inferred): the weight of the form, the pace of the levels. `mixed=true`
takes texts of any number of masks throughout.

`rewardlab data ramp DOCUMENTS --out FILE` makes the rows of documents.
"""

from rewardlab.checks.claim import Claim
from rewardlab.core import Environment, Group, Problem, Recipe, Rollout, Run, Trajectory, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import tools
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.dapo import dapo
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.interactive import interactive
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.replies import marked

TIMES, FEWEST = 10, 100
"""Batches that are looked through for texts of one level, and texts at least: a base that refills may ask for a single one."""


def masks_of(problem: Problem, column: str) -> int:
    """How many spans of its text are hidden."""
    number = problem.meta.get(column)
    if not isinstance(number, int) or number < 1:
        raise RewardlabError(f"problem {problem.question[:60]!r} says no number of masks in {column!r}: rewardlab data ramp does")
    return number


@rollout(wraps="inner")
def growing(problems: list[Problem], run: Run, *, inner: Rollout, max_masks: PositiveInt = 4, column: str = "masks") -> list[Group]:
    """The groups of `inner` for texts of the run's current level: 1 mask at first, `max_masks` in the last of equal parts.

    In place of other texts further ones of the training data are taken; where those are too few, texts of fewer masks fill the
    step, the nearest first. Logged: level.
    """
    level, wanted = min(max_masks, 1 + int(max_masks * run.progress)), len(problems)
    seen = list(problems)
    for _ in range(max(TIMES, FEWEST // wanted)):
        if run.more_problems is None or sum(masks_of(p, column) == level for p in seen) >= wanted:
            break
        seen += run.more_problems(wanted)
    # the sort is stable: of one number of masks the first ones are taken
    fitting = sorted((p for p in seen if masks_of(p, column) <= level), key=lambda p: -masks_of(p, column))
    if not fitting:
        raise NothingKept(f"of {len(seen)} texts none has {level} masks or fewer: rewardlab data ramp writes texts of each number")
    run.log("level", level)
    return inner(fitting[:wanted], run)


@reward
def in_form(trajectory: Trajectory, *, column: str = "masks") -> float:
    """1 for an episode that ends with an answer of one span for each mask, else 0."""
    said = marked(trajectory.reply)
    return float(said is not None and len([s for s in said.split(";") if s.strip()]) == masks_of(trajectory.problem, column))


def masksearch(
    base: Recipe | None = None, *, n: int = 8, max_masks: int = 4, turns: int = 5, form: float = 0.1, mixed: bool = False,
    column: str = "masks", env: Environment | None = None, corpus: str = "",
) -> Recipe:  # fmt: skip
    """max_masks: masks of a text in the last part of the run.  turns: the most that an episode may have.  form: weight of the form.
    mixed: texts of any number of masks throughout.  column: which says that number.  env, corpus: the tools, or a file of
    documents to search (`tools`); by default a search among the documents in meta["facts"].
    """
    base = base or dapo(grpo(n=n).but(minibatches=4), cache=0.0)
    sampled = base.required("rollout")
    # a base that plays in an environment keeps it
    if env or corpus or "env" not in base.sampling_settings:
        sampled = sampled.replace_innermost(independent, interactive, env=tools(env, corpus), turns=turns)
    episodes = sampled.innermost
    # within DAPO's filter: what it samples anew is of the level too
    texts = sampled if mixed else sampled.with_innermost(growing(inner=episodes, max_masks=max_masks, column=column))
    return base.but(
        rollout=texts,
        reward=(base.reward or correct()) + form * in_form(column=column),
        measure=episode_accuracy(rollout=episodes.but_innermost(n=1)),
    )


fidelity = "core"
left_out = (
    "recall of whole spans stands for recall of tokens or a judge's verdict; DAPO's penalty on long replies, since an "
    "episode is many short ones; supervised training on trajectories of planner, rewriter and observer agents, which "
    "sft imitates once they are recorded"
)
data = Data(
    prompt="a text in which spans are hidden, [mask 1], [mask 2] ..., and what to do with it",
    answer="the hidden spans, a list",
    masks=Column("how many spans are hidden, a whole number", setting="column"),
    facts=Column("documents that can be searched, a list of texts; not read with `corpus` or `env`", optional=True),
    rows=[
        {
            "prompt": "Fill in the mask: The Eiffel Tower stands in [mask 1]. End with Answer: and the span.",
            "answer": ["Paris"],
            "masks": 1,
            "facts": ["The Eiffel Tower is a tower in Paris, France.", "The Thames flows through London."],
        },
        {
            "prompt": "Fill in the mask: Marie Curie was born in [mask 1]. End with Answer: and the span.",
            "answer": ["Warsaw"],
            "masks": 1,
            "facts": ["Marie Curie was born in Warsaw in 1867.", "Curie won two Nobel Prizes."],
        },
        {
            "prompt": "Fill in the masks: [mask 1] wrote Faust in [mask 2]. End with Answer: and the spans, as in: a; b",
            "answer": ["Goethe", "German"],
            "masks": 2,
            "facts": ["Faust is a play by Goethe.", "Goethe wrote in German."],
        },
    ],
    verified_by="filled_masks",
)

claim = Claim(
    says="with one mask at first and four at last, more texts are filled wholly than with any number of masks from the start",
    versus="masksearch", task="masked", measure="pass@1", direction="higher", margin=0.047, settings={"problems": 8, "lr": 1e-4},
    versus_settings={"problems": 8, "lr": 1e-4, "mixed": True}, steps=24,
    tried="30 steps: the baseline ended at .88 (3 seeds: -.01, sd .05); 40 steps at a rate of 3e-4: at .95",
    finding="growing from one mask to four, 79% of the texts are filled wholly, with any number of masks from the start 83% (32% "
    "before): where all levels can be learnt at once, the order only costs",
)  # fmt: skip
