"""AlphaMed: rule-based RL without demonstrations or format rewards, on questions sampled evenly over difficulty.

    level(q) = 1 + k - right(q),    right(q): of k answers of the model before training
    trained on: as many questions from each of the levels that are named;    r = 1[the letter is right]

Level 1 is always solved, level k + 1 never. On easy questions alone, what a model does already is what is paid, and it learns no
reasoning that it has not; what teaches is a mixture with harder ones. Difficulty is measured once, before training, and then the
questions stay the same; filters by the current policy's rate follow it instead.

Liu et al. 2025, arXiv:2505.17952. No code was released. Read: the abstract, the project page (1,200 questions of each set; what
informs is seen by the length of a question), a summary ("a mix of difficulty levels is key"). (inferred): k = 5, so six levels,
which the 19,178 questions released fit (10,178 of MedQA and 6 x 1,500 of MedMCQA); that levels share evenly what one of them lacks;
the size of the pool; `longest`, which takes the longest questions of each level. The rater is a frozen copy of the policy, or any
model that is named; it stays in memory.

On files: rewardlab data pass-rate --samples 5, data filter --pass-rate, data mix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Loop, Recipe, Run, loop
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.positions import chosen, distinct_positions
from rewardlab.util.progress import in_batches

RATER, LEVELS, CHOSEN = "rater", "alphamed.levels", "alphamed.chosen"
AT_ONCE = 128


def level_of(verdicts: Sequence[float | None], k: int) -> int | None:
    """1 where all of k answers are right, k + 1 where none is. Answers without a verdict do not count; without any, no level."""
    judged = [v >= 1.0 for v in verdicts if v is not None]
    return 1 + round(k * (1 - sum(judged) / len(judged))) if judged else None


def composed(levels: Mapping[int, int], wanted: Sequence[int], total: int, lengths: Mapping[int, int] | None = None) -> list[int]:
    """`total` positions, evenly from the wanted levels; what a level lacks, the others share.

    levels: of each position.  lengths: the longest of each level come first; without them those that come first do.
    """
    found = {level: [i for i, own in levels.items() if own == level] for level in wanted}
    if lengths:
        found = {level: sorted(of, key=lambda i: -lengths[i]) for level, of in found.items()}
    taken: list[int] = []
    # the smallest level first, so that what it lacks is known to the others
    for n, level in enumerate(sorted(found, key=lambda level: len(found[level]))):
        taken += found[level][: (total - len(taken)) // (len(found) - n)]
    return sorted(taken)


@loop(wraps="inner")
def on_levels(
    recipe: Recipe, run: Run, ops: Any, *, levels: tuple[int, ...] = (), questions: PositiveInt = 1200, pool: PositiveInt = 3000,
    longest: bool = False, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Training steps (of the loop `inner`, if there is one) on `questions` of the next `pool` ones of the data, evenly from these
    levels, or from all. run.memory holds the level of each position, and those that are chosen. Logged: level, their mean.
    """
    if CHOSEN not in run.memory:
        rated, k = _rated(ops, pool), ops.learners[RATER].recipe.rows_per_problem
        lengths = {i: len(ops.task.train[i].question.split()) for i in rated} if longest else None
        taken = composed(rated, levels or range(1, k + 2), questions, lengths)
        if not taken:
            raise RewardlabError(f"none of {pool} questions is of the levels {levels}; they are of {sorted(set(rated.values()))}")
        run.memory |= {LEVELS: [[i, level] for i, level in rated.items()], CHOSEN: taken}
        ops.position = 0
    ops.task = replace(ops.task, train=chosen(ops.task.train, run.memory[CHOSEN], CHOSEN, run.seed))
    level = dict(run.memory[LEVELS])
    run.log("level", sum(level[i] for i in run.memory[CHOSEN]) / len(run.memory[CHOSEN]))
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def _rated(ops: Any, pool: int) -> dict[int, int]:
    """The level of each position in the data that has one."""
    rater, source = ops.learners[RATER], ops.task.train
    rated: dict[int, int] = {}
    for some in in_batches("rating questions (once)", distinct_positions(source, ops.position, pool), AT_ONCE):
        groups = ops.rollout([source[i] for i in some], rater)
        for i, row in zip(some, ops.score(groups, rater), strict=True):
            level = level_of([s.total for s in row], len(row))
            rated |= {} if level is None else {i: level}
    return rated


def alphamed(
    base: Recipe | None = None, *, levels: str | tuple[int, ...] = (), questions: int = 1200, pool: int = 3000, k: int = 5,
    longest: bool = False, rater: str = "copy:policy",
) -> Recipe:  # fmt: skip
    """levels: to train on, 1 the easiest, k + 1 never solved (1,2); all where none is named.  questions: that are trained on, of
    `pool` that are rated.  k: answers to each.  longest: the longest questions of each level.  rater: the model that answers them.
    """
    base = base or grpo()
    named = tuple(int(x) for x in levels.split(",") if x.strip()) if isinstance(levels, str) else levels
    rating = Recipe(rollout=independent(n=k), reward=correct())
    return base.but(
        loop=on_levels(levels=named, questions=questions, pool=pool, longest=longest, inner=base.loop),
        also=(*base.also, Learner(RATER, rater, rating, every=0)),
    )


fidelity = "core"
left_out = "the questions of MedQA, MedMCQA and PubMedQA, and the comparison of these sets by size and by what they teach"
data = Data(
    answer="the letter of the right option, or any gold answer that the verifier judges",
    rows=[
        {
            "prompt": "Which nerve raises the arm to the side? A. axillary  B. ulnar  C. median. End with Answer: LETTER.",
            "answer": "A",
        },
        {"prompt": "Which vitamin prevents scurvy? A. B12  B. D  C. C. End with Answer: and the letter.", "answer": "C"},
        {"prompt": "Where is insulin made? A. liver  B. pancreas  C. spleen. End with Answer: and the letter.", "answer": "B"},
    ],
)

GIVEN = {"problems": 16, "questions": 60, "pool": 320}
claim = Claim(
    says="evenly from all levels of difficulty, as many questions teach more in as many updates than easy ones alone",
    versus="alphamed", task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.068,
    settings=GIVEN, versus_settings={**GIVEN, "levels": "1,2"}, steps=40,
    fault=Within("pass@1", high=0.6, says="right after training on easy questions alone"),
    moved=Within("train.all_right", high=-0.1, says="groups in which all are right, less than on easy questions"),
    finding="36% right before; 58% after questions of all levels, 41% after as many easy ones. Easy ones teach too little to "
    "count as learning, so that the rule by which a comparison is fair leaves this one undecided",
)  # fmt: skip
baseline = "grpo"
