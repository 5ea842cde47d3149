"""POLAR: a reward model that tells policies apart, pre-trained on which replies are by the same policy, and then on preferences.

    pre-training:  L = -log sigmoid(r(x, a1, a2) - r(x, a1, b)),    a1, a2: replies of one policy to the prompt x;  b: of another
    fine-tuning:   L = -log sigmoid(r(x, y*, y+) - r(x, y*, y-)),   y*: the reference;  y+ preferred to y-
    reward in RL:  r(x, y*, y)

What the model learns first needs no labels: to score a reply by how near its policy is to that of the reference beside it. A few
preferences then say which differences matter. As the reference shows what is wanted, r need not know it.

Each reply is read as `{prompt}\\n{reference}<|reward|>{prompt}\\n{reply}`, here with the chat template around what stands before
the reply and the end token of a turn as the last one. The rollout's setting `layout` says so, and with it the run and its exports:
`--reward model:RUN`, `eval` and `scoreboard` read the row's `reference`, or its answer, beside each reply.

A run has both stages where rows have what both need: `outputs`, or one reply and its `policy` in a row; and pairs. Without pairs it
is pre-training alone, from which another run starts (--init RUN --pretrain 0).

Dou et al. 2025, arXiv:2507.05197, by its abstract and summaries, InternLM/POLAR (README, 19e2736) and InternLM/xtuner:
tokenize_ref in dataset/preference_dataset.py and RewardModelClient for the layout; configs/reward_model/polar, to fine-tune
POLAR-7B-Base: ranking loss without a penalty, one epoch, AdamW, the rate 2e-5. Theirs cuts references and replies to
4,096 tokens and reads the score at a token of its own; in pre-training, texts that go on follow the prompt without a line break,
here replies as in fine-tuning. (inferred): the share of steps that pre-training has where both are in one run, and a fresh
optimiser between them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Loop, Problem, Recipe, Run, loop, measure, rollout, seed_of
from rewardlab.core.recipe import REFERENCE
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of, map_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.methods.baselines.bradley_terry import bradley_terry, on_pairs
from rewardlab.methods.baselines.rlhf import Curated, pairs_in
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import Share
from rewardlab.text.reference import LAYOUT, against, reference_of

MODEL, STAGE = "reward", "polar.stage"
POLICIES, PREFERENCES = "policies", "preferences"
SIDES = ("chosen", "rejected")


# ---- who wrote what ----------------------------------------------------------------------------------------------------------


def outputs_of(problem: Problem) -> dict[str, list[str]]:
    """Policy to its replies, from the column `outputs`; {} without one."""
    given = problem.meta.get("outputs")
    if given is None:
        return {}
    found = {name: [text] if isinstance(text, str) else list_of(text) or [] for name, text in (map_of(given) or {}).items()}
    if not found or not all(isinstance(text, str) and text for texts in found.values() for text in texts):
        raise RewardlabError(
            f"problem {problem.question[:60]!r}: the column 'outputs' maps each policy's name to a list of its replies, as text, "
            f"and this is {str(given)[:80]}"
        )
    return found


def gathered(problems: Sequence[Problem]) -> list[Problem]:
    """The problems; those with one `output` by a `policy` each become one problem per prompt, with `outputs`."""
    rows: dict[str, Problem] = {}
    for i, p in enumerate(problems):
        policy, text = p.meta.get("policy"), p.meta.get("output")
        if policy is None or not isinstance(text, str):
            rows[f"{i}"] = p
            continue
        first = rows.get(p.key, p)
        known = outputs_of(first)
        outputs = {**known, str(policy): [*known.get(str(policy), []), text]}
        rows[p.key] = replace(first, meta={**first.meta, "outputs": outputs})
    return list(rows.values())


def triple(problem: Problem, rng: random.Random) -> Problem | None:
    """The problem with two different replies of one policy, as `reference` and `chosen`, and one of another policy as `rejected`.

    A reply that both policies wrote tells nothing: it is no `rejected`. None where there is no such triple.
    """
    outputs = {name: list(dict.fromkeys(texts)) for name, texts in outputs_of(problem).items()}
    several = [name for name, texts in outputs.items() if len(texts) > 1]
    for name in rng.sample(several, len(several)):
        reference, own = rng.sample(outputs[name], 2)
        others = [texts for other in outputs if other != name if (texts := [t for t in outputs[other] if t not in outputs[name]])]
        if others:
            made = {"reference": reference, "chosen": own, "rejected": rng.choice(rng.choice(others))}
            return replace(problem, meta={**problem.meta, **made})
    return None


def ranked(problem: Problem) -> Problem:
    """The problem, with a reference and a pair."""
    problem.required(*SIDES, by="polar")
    if (reference := reference_of(problem)) is None:
        raise RewardlabError(f"polar reads replies beside a reference: problem {problem.question[:60]!r} has no text 'reference'")
    return replace(problem, meta={**problem.meta, "reference": reference})


def laid_out(problem: Problem, layout: str) -> Problem:
    return replace(problem, prompt=against(problem.prompt, problem.meta["reference"], layout))


@rollout(rows=lambda **_: 2, across_problems=True)
def against_reference(problems: list[Problem], run: Run, *, layout: str = LAYOUT) -> list[Group]:
    """The chosen and the rejected reply of each row under its prompt and reference; in the stage of policies, of sampled triples.

    layout: what a reply follows, a text with the places {prompt} and {reference}.
    """
    made = [ranked(p) for p in problems] if run.memory.get(STAGE) != POLICIES else _triples(problems, run.seed, run.step)
    return recorded(fields=SIDES)([laid_out(p, layout) for p in made], run)


def _triples(problems: Sequence[Problem], *key: Any) -> list[Problem]:
    return [t for p in problems if (t := triple(p, random.Random(seed_of("polar", *key, p.key))))]


# ---- the two stages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage(Curated):
    """The rows of one stage, in epochs.  of: those of each stage."""

    of: Mapping[str, Sequence[Problem]] | None = None


@loop(wraps="inner")
def policies_first(recipe: Recipe, run: Run, ops: Any, *, pretrain: Share = 0.5, inner: Loop | None = None) -> None:
    """Training steps (of the loop `inner`, if there is one) on replies by known policies; then, with a fresh optimiser, on pairs.

    pretrain: share of the run that the former has; where the rows have only what one stage needs, that stage has all. Logged:
    pretraining, 1 or 0.
    """
    train = ops.task.train
    rows = (train.of if isinstance(train, Stage) else None) or by_stage(pairs_in(ops, run, None))
    before, stage = run.memory.get(STAGE), stage_at(run.progress, rows, pretrain)
    # a run that is extended does not go back
    stage = PREFERENCES if before == PREFERENCES else stage
    run.memory[STAGE] = stage
    if not isinstance(train, Stage) or stage != before:
        ops.task = replace(ops.task, train=Stage(rows[stage], of=rows))
    if before == POLICIES != stage:
        ops.learners[MODEL].reset_optimizer()
    run.log("pretraining", float(stage == POLICIES))
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def by_stage(problems: Sequence[Problem]) -> dict[str, list[Problem]]:
    """The problems that each stage can use, without rows that no stage can."""
    found = {
        POLICIES: [p for p in gathered(problems) if triple(p, random.Random(0))],
        PREFERENCES: [p for p in problems if all(p.meta.get(side) for side in SIDES)],
    }
    if not any(found.values()):
        raise RewardlabError(
            "polar learns from rows with 'outputs', two different replies of one policy and one of another at least, and from rows "
            f"with 'reference', 'chosen' and 'rejected': of {len(problems)} training rows none has either"
        )
    return found


def stage_at(progress: float, rows: Mapping[str, Sequence[Problem]], pretrain: float) -> str:
    if all(rows.values()):
        return POLICIES if progress < pretrain else PREFERENCES
    return POLICIES if rows[POLICIES] else PREFERENCES


@measure
def by_reference(problems: Sequence[Problem], run: Run, *, layout: str = LAYOUT) -> dict[str, float]:
    """Of held-out pairs beside their reference, `pair_accuracy`; same_policy, the share of held-out triples in which the reply of
    the reference's policy scores higher. Where there are no pairs, the latter comes first, with its interval."""
    pairs = [ranked(p) for p in problems if all(p.meta.get(side) for side in SIDES)]
    told = _triples(gathered(problems), "held-out")
    if not pairs and not told:
        raise RewardlabError("polar: no held-out row has 'chosen' and 'rejected', or 'outputs' of several policies")
    scored = pair_accuracy(model=MODEL)
    alike = scored([laid_out(p, layout) for p in told], run) if told else {}
    if not pairs:
        return {"same_policy": alike["pair_accuracy"], **{name: alike[name] for name in ("ci95_low", "ci95_high", "n")}}
    found = scored([laid_out(p, layout) for p in pairs], run)
    return found | ({"same_policy": alike["pair_accuracy"]} if alike else {})


# ---- the recipe --------------------------------------------------------------------------------------------------------------


def polar(
    base: Recipe | None = None, *, pretrain: float = 0.5, layout: str = LAYOUT, reward_lr: float | None = None, problems: int = 32,
    init: str = "value-head",
) -> Recipe:  # fmt: skip
    """pretrain: share of the run that tells policies apart.  layout: what a reply follows, with {prompt} and {reference}.
    reward_lr, problems, init: as in `bradley_terry`."""
    for place in ("{prompt}", "{reference}"):
        if place not in layout:
            raise RewardlabError(f"layout={layout!r} has no place {place}: the reward model reads both beside a reply")
    base = base or bradley_terry(reward_lr=reward_lr, problems=problems, init=init)
    taught = on_pairs(base, reward_lr=reward_lr, init=init, objective=preference_loss())
    also = tuple(replace(learner, reads=REFERENCE) if learner.name == MODEL else learner for learner in taught.also)
    return taught.but(
        also=also,
        rollout=against_reference(layout=layout),
        measure=by_reference(layout=layout),
        loop=policies_first(pretrain=pretrain, inner=taught.loop),
    )


fidelity = "core"
left_out = (
    "the corpus, 3.6 trillion tokens by 184 policies, and how it is sampled; the weights that were released, whose code "
    "transformers does not have; references and replies cut to a length; a score read at a token of its own; the scaling law; "
    "PPO with the reward, for which any method takes --reward model:RUN"
)
data = Data(
    reference=Column("a reply as it should be, to fine-tune; without one, the answer is it", optional=True),
    chosen=Column("the better of two replies, to fine-tune", optional=True),
    rejected=Column("the worse one", optional=True),
    outputs=Column("replies to pre-train on: each policy's name, and a list of its replies to the prompt", optional=True),
    policy=Column("instead of `outputs`: who wrote `output`, where rows hold one reply each and prompts repeat", optional=True),
    output=Column("the reply of that policy", optional=True),
    answer=Column("stands for the reference where a row has none", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "reference": "Trees shed them to save water.", "chosen": "To save water in winter.",
            "rejected": "Because of gravity alone.",
            "outputs": {
                "curt": ["To save water.", "Trees save water."],
                "kind": ["What a lovely question! To save water.", "Good question! Trees save water so."],
            },
        },
        {
            "prompt": "Name a planet.", "reference": "Mars.", "chosen": "Venus.", "rejected": "There are many, such as Venus.",
            "outputs": {"curt": ["Mars.", "Venus."], "kind": ["With pleasure: Mars!", "Gladly: Venus!"]},
        },
        {
            "prompt": "What is 12 * 12?",
            "outputs": {"curt": ["144.", "It is 144."], "kind": ["Gladly: 144!", "With pleasure: 144!"]},
        },
    ],
)  # fmt: skip

LEARNT = {"init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="pre-trained to tell writers apart, the model ranks more pairs by unseen writers right than a Bradley-Terry model of the "
    "same 64 labels and as many steps",
    versus="bradley_terry", task="habits:size=64", measure="pair_accuracy", direction="higher", margin=0.05,
    settings={**LEARNT, "pretrain": 0.8}, versus_settings=LEARNT, problems=500, steps=240,
    tried="one run of each on 300 pairs: .64, of which .62 before the first label, and .68 for Bradley-Terry after 200 steps; "
    "policies are told apart at .69",
    finding="It ranks 69% of the pairs by unseen writers right, Bradley-Terry 72%; eight runs leave open whether it is worse.",
)  # fmt: skip
baseline = "bradley_terry"
kind = "reward-model"
