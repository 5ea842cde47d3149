"""GRPO-CARE: a bonus for the right replies whose own answer is likeliest after their reasoning, by a slow copy of the policy.

    c = min(cap, exp of the mean over the tokens t of the stated answer of log slow(y_t | x, y_<t))
    peers: replies with r > 0.1 and r >= mean(r);     R = r + weight r [a peer, and c >= mean over the peers of c - margin]
    after every 10 updates: slow <- decay slow + (1 - decay) pi;     GRPO on R, without a KL

Paid for answers alone, a policy learns to answer rightly after reasoning that leads elsewhere, or nowhere. What an answer's tokens
are worth to a model that has read the reasoning says how far it follows. The policy itself would be its own judge, and drift with
what it is paid for; its start would hold it back as a KL does: the slow copy follows behind both. Wrong replies earn no bonus, as
a wrong answer may follow well.

Chen et al. 2025, arXiv:2506.16141, and TencentARC/GRPO-CARE (grpo_trainer_ref_ema.py, ema_trainer.py,
run_grpo_care_margin0_seed_bench_r1.sh and two others, 03c3a7c): cap .95, weight .5, decay .995 every 10 updates, n = 8, beta 0, and
a margin of 0 for its own benchmark, .01 for transfer to others. r is the verifier's, which may be graded; a reward for the form
<think>...</think><answer>...</answer> is added with weight 1 there, and here with `form`, since a prompt must ask for it first.
(inferred): where it finds no answer's tokens, the release takes the highest likelihood: here such a reply, as a program may be,
has no bonus and counts for no mean. `of="reply"` takes the likelihood of all that is written, for comparison.
"""

from typing import Any, Literal

import numpy as np
import torch

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Loop, Problem, Recipe, Rollout, Run, Score, Scores, Trajectory, loop, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import Decay, NonNegativeFloat, PositiveInt, PositiveShare
from rewardlab.text.answer_tokens import answer_tokens
from rewardlab.text.reasoned import gold_text, with_gold
from rewardlab.worlds.remainders import right_chain

SLOW = "slow"
LEAST = 0.1
"""A graded verdict up to this is no right answer."""
FORM = r"<think>.*?</think>\s*<answer>.*?</answer>"
Of = Literal["answer", "reply"]

# ---- the bonus ---------------------------------------------------------------------------------------------------------


def peers(rewards: list[float | None]) -> list[bool]:
    """Which replies of a group are right, and no worse than its mean."""
    known = [r for r in rewards if r is not None]
    return [r is not None and r > LEAST and r >= float(np.mean(known)) for r in rewards]


def bonuses(rewards: list[float | None], likelihoods: list[float | None], margin: float) -> list[float | None]:
    """Of each reply of a group, from the likelihoods of its peers; None where it has no reward."""
    known = [c for c in likelihoods if c is not None]
    least = np.mean(known) - margin if known else np.inf
    return [None if r is None else r if c is not None and c >= least else 0.0 for r, c in zip(rewards, likelihoods, strict=True)]


@reward(over="groups", relative=True)
def consistency(
    groups: list[Group], run: Run, *, margin: NonNegativeFloat = 0.0, cap: PositiveShare = 0.95, of: Of = "answer",
    model: str = SLOW,
) -> Scores:  # fmt: skip
    """The verdict of a right reply once more, where a model finds its answer at least as likely as those of its right peers.

    margin: how far below their mean it may be.  cap: of the likelihood, the geometric mean over tokens.  of: the tokens: of the
    answer that is stated, or of the whole reply.  model: that of the run, with the policy's tokenizer.
    Chen et al. 2025, arXiv:2506.16141
    """
    verdicts = correct()(groups, run)
    rewards = [[s.total for s in row] for row in verdicts]
    asked = [t for group, row in zip(groups, rewards, strict=True) for t, ok in zip(group, peers(row), strict=True) if ok]
    found = _likelihoods(asked, run, cap, of, model)
    likelihoods = [[found.get(id(t)) for t in group] for group in groups]
    paid = [bonuses(*row, margin) for row in zip(rewards, likelihoods, strict=True)]
    return [[_score(*x) for x in zip(*rows, strict=True)] for rows in zip(verdicts, likelihoods, paid, strict=True)]


def _score(verdict: Score, likelihood: float | None, paid: float | None) -> Score:
    if paid is None:
        return Score(None, why=verdict.why)
    return Score(paid, why="no peer with an answer" if likelihood is None else f"its answer has the likelihood {likelihood:.3f}")


def _likelihoods(rows: list[Trajectory], run: Run, cap: float, of: Of, model: str) -> dict[int, float]:
    """By the identity of each reply in which there is something to be likely."""
    spans = [answer_tokens(t, run.policy.pieces) if of == "answer" else np.flatnonzero(t.mask).tolist() for t in rows]
    asked = [(t, span) for t, span in zip(rows, spans, strict=True) if span]
    logprobs = run.model(model).score([t for t, _ in asked]) if asked else []
    means = [x[span].astype(np.float64).mean() for x, (_, span) in zip(logprobs, asked, strict=True)]
    return {id(t): min(cap, float(np.exp(mean))) for mean, (t, _) in zip(means, asked, strict=True)}


@loop(wraps="inner")
def slow_follows(
    recipe: Recipe, run: Run, ops: Any, *, decay: Decay = 0.995, every: PositiveInt = 10, inner: Loop | None = None
) -> None:
    """After every `every` training steps, move the weights of the model `slow` by 1 - decay of the way to the policy's.

    inner: how a step is taken.
    """
    if run.step and run.step % every == 0:
        slow, new = run.model(SLOW), run.policy.state()
        slow.load_state({name: torch.lerp(new[name].float(), w.float(), decay).to(w.dtype) for name, w in slow.state().items()})
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


# ---- the recipe --------------------------------------------------------------------------------------------------------


def grpo_care(
    base: Recipe | None = None, *, bonus: float = 0.5, margin: float = 0.0, cap: float = 0.95, decay: float = 0.995,
    every: int = 10, form: float = 0.0,
) -> Recipe:  # fmt: skip
    """bonus: weight of the bonus.  margin, cap: of `consistency`.  decay, every: of the slow copy.  form: weight of 1 for
    reasoning and answer between their tags.
    """
    base = base or grpo()
    paid = (base.reward or correct()) + bonus * consistency(margin=margin, cap=cap)
    return base.but(
        reward=paid + form * format_ok(pattern=FORM) if form else paid,
        loop=slow_follows(decay=decay, every=every, inner=base.loop),
        also=(*base.also, Learner(SLOW, "copy:policy", Recipe(), every=0)),
    )


fidelity = "core"
left_out = (
    "removing a KL that a base brings; sampling at top-p .95, weight decay, the cosine of the rate and the limit of 5 for the norm "
    "of gradients, which are the trainer's; the reward for tags, unless `form` asks for it; and videos"
)
data = Data(
    prompt="the question, with its options if there are any; a picture or frames may come with it",
    answer="the gold answer, stated in words, a letter or a number",
    rows=[
        {
            "prompt": "Someone has cracked two eggs into a bowl and holds a fork. What comes next?\nA. wash the fork\nB. beat the "
            "eggs\nC. peel the eggs\nReason first, between <think> and </think>; then give the letter between <answer> and "
            "</answer>.",
            "answer": "B",
        },
        {
            "prompt": "A train leaves at 9:40 and arrives at 11:05. How many minutes does it take? Reason, then: Answer: N",
            "answer": "85",
        },
        {"prompt": "What is the next prime after 13? Put it in \\boxed{}.", "answer": "17"},
    ],
)

# ---- its check ---------------------------------------------------------------------------------------------------------


@rollout(wraps="inner")
def with_right_answer(problems: list[Problem], run: Run, *, inner: Rollout) -> list[Group]:
    """The samples of `inner`, their own answers exchanged for the gold one: right replies, wherever their reasoning leads."""
    groups = inner(problems, run)
    rows = [t for group in groups for t in group]
    prompts = run.policy.read([Trajectory(t.problem) for t in rows], [t.problem.prompt for t in rows])
    written = iter(run.policy.write(prompts, [with_gold(t.reply, gold_text(t.problem))[1] for t in rows]))
    return [[next(written) for _ in group] for group in groups]


# the bonus by the answer and by all that is written; the verdict that both multiply is 1 for all that are compared
BONUS = consistency().named("answer") + consistency(of="reply").named("reply")
check = Check(
    says="of two right replies the bonus goes oftener to the one whose reasoning leads to its answer than if all its words counted",
    versus=None, task="arithmetic", measure="agreement.answer", direction="higher", margin=0.1, against="agreement.reply",
    settings={"problems": 2},
    by=told_apart(reward=BONUS, truth=right_chain(), rollout=with_right_answer(inner=independent(n=8)), among=correct()),
    problems=60, steps=1,
    fault=Within("truth", high=0.85, says="share of replies whose reasoning leads to their answer"),
    tried="choices, whose rationales contradict answers by themselves: the small policy is at chance there (24% right of four "
    "options), its answers follow from nothing, and two seeds gave .54 and .40 in place of .59 and .54; here, 150 problems, two "
    "seeds: .975 and .980, all words .973 and .982",
    finding="of two right replies, one after reasoning that leads to its answer and one after reasoning that does not, the bonus "
    "goes to the former in 98% of the pairs, ties half; by the likelihood of all its words also in 98%: an answer from nowhere "
    "is unlikely enough to show in the whole of a short reply. Shortcuts are planted here, and no policy is trained",
)  # fmt: skip
baseline = "grpo"
