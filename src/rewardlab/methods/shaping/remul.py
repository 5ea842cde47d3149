"""REMUL: reward a reply when other models, continuing its partial reasoning, reach its answer.

    r = share of (listener, cut) that state the reply's own answer,    cuts after 1/4, 1/2 and 3/4 of the lines of its reasoning
    then, in the last steps:  loss = -mean over the answer's tokens of log pi(gold answer | x, the policy's own reasoning)

Who can be followed says what the answer hangs on. Right or wrong does not count in r; so that the policy does not get worse, it
learns the gold answers after its own reasoning, of which nothing is learnt then (masked SFT). In one reward, paying for being right
and for being followed pull against each other.

Sivakumaran et al. 2026, arXiv:2602.16154; reward, cuts, n = 5, temperature 0.7 and a KL of 0.001 are those of the released script
(nsivaku/remul, 7effae1), as are the mean over tokens, the entropy bonus of 0.001 and ten times the rate for masked SFT, whose loss
is a mean over the answer's tokens of the batch. Its three listeners are Ministral-3-14B, Phi-4 and Qwen3-14B, the last one the
speaker's own start, at temperatures of 0.9 to 1.1: listeners="PATH,PATH"; r is their number of matches there, of which the share is
a multiple. There masked SFT is a run of five epochs after the other one, with LoRA; how many steps it gets here is (inferred). The
measures of the paper are `early_answering`, `mistake_injection` and `hint_attribution`, for any method.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Loop, Problem, Recipe, Rollout, Run, Sampling, Score, Scores, Trajectory, loop, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.groups import told_apart
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, Share
from rewardlab.text.prefixes import begun, same_answer, stated, thinks_in_tags
from rewardlab.text.reasoned import deciding_the_rest, with_gold

# ---- Whether other models come to a reply's answer, when they go on from the beginning of its reasoning --------------


@reward(over="groups")
def reasoning_transfer(
    groups: list[Group], run: Run, *, models: tuple[str, ...] = ("listener",), at: tuple[float, ...] = (0.25, 0.5, 0.75),
    temperature: NonNegativeFloat = 0.9,
) -> Scores:  # fmt: skip
    """The share of continuations that state the reply's own answer, right or wrong: each model goes on once from the first share of
    the reasoning's lines, for each of the shares `at`.

    models: their names in the run (`Learner`s of the recipe). 0 for a reply without reasoning, or without an answer. No verdict
    where a model's context cannot hold one.  Sivakumaran et al. 2026, arXiv:2602.16154
    """
    rows = [t for group in groups for t in group]
    answers = [stated(t.reply) if begun(t.reply, 1.0) else None for t in rows]
    asked = [(i, begun(rows[i].reply, share)) for i, answer in enumerate(answers) if answer for share in at]
    heard: list[list[str | None]] = [[] for _ in rows]
    for name in models:
        texts = continued(run.model(name), [rows[i] for i, _ in asked], [text for _, text in asked], run, temperature)
        for (i, _), text in zip(asked, texts, strict=True):
            heard[i].append(text)
    scores = iter([_agreement(answer, texts) for answer, texts in zip(answers, heard, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def continued(model: Any, rows: list[Trajectory], texts: list[str], run: Run, temperature: float) -> list[str | None]:
    """What the model makes of each text as the beginning of its own reply to the row's prompt; None where it does not fit."""
    if not rows:
        return []
    prompts = model.read([Trajectory(t.problem) for t in rows], [t.problem.prompt for t in rows])
    # written as a reply, less the token that ends it
    started = [t.cut(len(t) - 1, model.decode) for t in model.write(prompts, texts)]
    fit = [i for i, t in enumerate(started) if len(t) + run.max_new <= model.context]
    done = model.extend([started[i] for i in fit], Sampling(run.max_new, temperature), run.rng("listeners")) if fit else []
    replies = {i: t.reply for i, t in zip(fit, done, strict=True)}
    return [replies.get(i) for i in range(len(texts))]


def _agreement(answer: str | None, texts: list[str | None]) -> Score:
    if not answer:
        return Score(0.0, why="no reasoning, or no answer")
    if None in texts:
        return Score(None, why="the beginning of the reasoning does not fit a listener's context")
    said = [stated(text or "") for text in texts]
    return Score(sum(bool(x) and same_answer(x or "", answer) for x in said) / max(1, len(said)), why=f"they say {said}")


# ---- The policy's own reasoning with the gold answer after it --------------------------------------------------------


@rollout(wraps="inner")
def append_answer(problems: list[Problem], run: Run, *, inner: Rollout, mark: str = "Answer:") -> list[Group]:
    """The samples of `inner`, with the gold answer in place of their own. The answer's tokens alone are the policy's decisions: its
    reasoning is text that was read, so that nothing is learnt of it. Recorded, so without log-probs of sampling.

    mark: what stands before an answer, where the reply does not think between tags.  Replies that leave the model's context no room
    for the answer are left out.
    """
    for p in problems:
        if p.answer is None or isinstance(p.answer, list | dict) or not str(p.answer).strip():
            raise RewardlabError(f"gold_answer_after needs a gold answer that is a text; problem {p.question[:60]!r} has none")
    groups = inner(problems, run)
    rows = [t for group in groups for t in group]
    prompts = run.policy.read([Trajectory(t.problem) for t in rows], [t.problem.prompt for t in rows])
    thinks = [thinks_in_tags(t.reply, prompt, run.policy.decode) for t, prompt in zip(rows, prompts, strict=True)]
    golds = [with_gold(t.reply, str(t.problem.answer), mark, x) for t, x in zip(rows, thinks, strict=True)]
    befores, wholes = zip(*golds, strict=True)
    written = zip(prompts, run.policy.write(prompts, befores), run.policy.write(prompts, wholes), strict=True)
    made = iter([deciding_the_rest(*row) for row in written])
    done = [[replace(next(made), path=t.path) for t in group] for group in groups]
    fit = [kept for group in done if (kept := [t for t in group if len(t) <= run.policy.context])]
    if not fit:
        raise RewardlabError(f"no gold answer fits the model's context of {run.policy.context} after its reply: lower --max-new")
    return fit


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@loop(wraps="inner")
def answers_last(
    recipe: Recipe, run: Run, ops: Any, *, share: Share = 0.2, sft_lr_scale: PositiveFloat = 10.0, mark: str = "Answer:",
    temperature: NonNegativeFloat = 0.7, inner: Loop | None = None,
) -> None:  # fmt: skip
    """The last `share` of the run, of its steps or its budget, imitates the gold answer after the policy's own reasoning; the other
    steps go by the recipe.

    sft_lr_scale: the learning rate of these steps, as a multiple of the recipe's.  mark: before an answer.  temperature: at which
    the reasoning is sampled.  inner: how a step is taken.
    """
    # a sum of tenths is not exact
    if run.progress < 1 - share - 1e-9:
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)
        return
    lesson = append_answer(inner=independent(n=1, temperature=temperature), mark=mark)
    update = {"lr": min(1.0, sft_lr_scale * recipe.update.rate), "problems": recipe.update.problems}
    ops.standard_step(Recipe(rollout=lesson, objective=imitate(), weighting=token_mean()).but(**update))


def remul(
    base: Recipe | None = None, *, listeners: str = "copy:policy", share: float = 0.2, sft_lr_scale: float = 10.0,
    mark: str = "Answer:", hearing: float = 0.9, right: float = 0.0, n: int = 5, temperature: float = 0.7, beta: float = 0.001,
    entropy: float = 0.001,
) -> Recipe:  # fmt: skip
    """listeners: what they start from (`Learner.init`), with commas between them.  share, sft_lr_scale, mark: of the masked SFT.
    hearing: the temperature of listeners.  right: weight of being right in the reward ("balanced" in the paper).  n, temperature,
    beta: of grpo.  entropy: weight of the entropy bonus. The reward takes the place of a base's.
    """
    base = base or grpo(n=n, temperature=temperature, beta=beta).but(weighting=token_mean())
    if entropy:
        base = base.but(objective=base.required("objective") + entropy * negative_entropy())
    names = {f"listener{i}": init.strip() for i, init in enumerate(listeners.split(","), 1)}
    heard = reasoning_transfer(models=tuple(names), temperature=hearing)
    paid = heard + right * correct() if right else heard
    return base.but(
        reward=paid,
        measure=own_reward(reward=paid, rollout=independent(n=1)),
        also=(*base.also, *(Learner(name, init, Recipe(), every=0) for name, init in names.items())),
        loop=answers_last(share=share, sft_lr_scale=sft_lr_scale, mark=mark, temperature=temperature, inner=base.loop)
        if share
        else base.loop,
    )


fidelity = "core"
left_out = (
    "listeners of other families, which are large models: a copy of the policy by default; their temperatures, one each, top-p of "
    ".9 and repetition penalty of 1.1 (top-p of the policy too); and LoRA in the masked SFT (`--lora-rank`)"
)
data = Data(
    answer="the gold answer, learnt after the policy's own reasoning",
    rows=[
        {
            "prompt": "Start with 7. Add 5. Multiply by 3. Reason, then end with Answer: and the number.",
            "answer": "36",
        },
        {
            "prompt": "All cats purr. Tom does not. Is Tom a cat? A. yes  B. no. Reason, then end with Answer: B or A.",
            "answer": "B",
        },
    ],
)

HEARD = reasoning_transfer(models=("listener1",)).named("heard") + 0.0 * correct()
check = Check(
    says="of two right answers, listeners prefer the one that its lines lead to, which being right cannot tell apart", versus=None,
    task="hindsight:test_size=1000", measure="agreement.heard", direction="higher", margin=0.155, against="agreement.correct",
    by=own_share(
        inner=told_apart(reward=HEARD, truth=score_in_data(), rollout=recorded(fields=("followed", "hindsight"))), parts=10
    ),
    problems=1000, steps=1, fault=Within("signal.correct", high=0.1, says="pairs that being right tells apart"), learns=None,
    start=None,
    sanity=True,
    finding="of two right replies, listeners prefer the one whose lines lead to its answer in 79% of pairs; being right tells none "
    "apart, so that half is the rival's share by construction. That a policy becomes easier to follow is not tested",
)  # fmt: skip
baseline = "grpo"
