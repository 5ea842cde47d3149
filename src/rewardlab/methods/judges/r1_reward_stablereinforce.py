r"""R1-Reward: a judge of two replies by StableReinforce: log-ratios clipped before exp, outlying advantages left out, and a bonus
where its verdict follows from its analysis.

    ratio_t = exp(clip(log pi - log pi_old, log low, log high));    loss = -min(ratio A, clip(ratio, 1 - eps, 1 + eps) A)
    A: Reinforce++'s, whitened over the batch;    A = 0 where |A - mean(A)| > 3 std(A)
    r = result (1 + consistency / 2) + format / 2,    result 1 or 0,  consistency 1, -1 or, where a referee says neither, 0

PPO's minimum does not bound a ratio above 1 + eps where A < 0, so that a batch that is used several times may give losses beyond
all bounds. And where nearly all verdicts are right, whitening makes a rare wrong one an outlier that outweighs the others. Paid for
verdicts alone, judges write analyses that prefer the one reply and verdicts that prefer the other: a referee reads how the analysis
ends, and the verdict, and says whether they agree.

Zhang et al. 2025, arXiv:2505.02835, and yfzhang114/r1_reward at 176aba8 (scripts/train.sh, openrlhf/models/loss.py,
trainer/ppo_utils/replay_buffer.py, models/remote_rm/math_verifier_mllm.py): low, high = 1e-3, 1e3; the reward as above, -1 for a
verdict that the analysis does not support, which the paper's formula has as 0; the last three lines of the analysis are read; one
judgement of a row, two updates of a batch of 256, here 128; a KL of 1e-3 in the reward; the mean of each reply. The filter is the
paper's: the release tests the whitened advantage against the mean before whitening +- 3. There the referee is
Qwen2.5-VL-7B-Instruct, from which the policy starts too: here it is the policy as it started, unless `referee` names another.
(inferred): the words of both questions; marks [[A]] and [[B]] between the tags, where the release has 1 and 2; the referee is
asked once, of right verdicts alone (the others earn nothing by it), and its likeliest answer counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.clients.messages import Failure
from rewardlab.core import (
    Batch,
    Credit,
    Group,
    Outputs,
    Problem,
    Recipe,
    Rollout,
    Run,
    Score,
    Scores,
    Trajectory,
    ask,
    credit,
    measure,
    objective,
)  # fmt: skip
from rewardlab.credit.group import whiten, with_verdict
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import logprob_gradient_products, mean_credit, paid_at_the_end
from rewardlab.judges.cases import agrees
from rewardlab.judges.forms import TWO_REPLIES, Form, own_form
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.reinforce_plus_plus import reinforce_plus_plus
from rewardlab.methods.baselines.trained_judge import judge_beside, trained_judge
from rewardlab.objectives.weighting import row_mean
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.judge import judgements_by
from rewardlab.rewards.judgements import reading_of, right_judgement
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.judgements import judgements
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, Share
from rewardlab.worlds.duels import FORM as SMALL_FORM

FORM = (
    """You are shown a question, with any pictures, and two replies to it. Decide without taking sides which of them is better.

First compare the replies thoroughly, side by side, between <think> and </think>. There is no tie: choose the better one. Then give
your verdict between <answer> and </answer>: [[A]] if reply A is better, [[B]] if reply B is. Keep strictly to this form:
<think>your detailed comparison</think><answer>[[A]] or [[B]]</answer>

"""
    + TWO_REPLIES
)
FORMAT = r"(?:<think>)?(?:(?!</?think>).)+</think>\s*<answer>(?:(?!</?answer>).)+</answer>"
"""Both pairs of tags once, and nothing outside of them; a chat template may have opened the first."""
REFEREE = """A judge compared two replies. Read how its analysis ends, and its verdict. Do they say the same?

They do not where the analysis prefers the other reply, where it finds both equally good, or where it leads to no clear choice.

{reply}

Say only [[yes]] if the verdict is what the analysis says, else [[no]]."""
FIRST, SECOND = "the first reply, reply A, is better", "the second reply, reply B, is better"

# ---- StableReinforce -----------------------------------------------------------------------------------------------------


@objective(unit="token", needs=("old",))
def preclipped_ratio(
    out: Outputs, batch: Batch, run: Run, *, eps: PositiveFloat = 0.2, low: PositiveFloat = 1e-3, high: PositiveFloat = 1e3
) -> Tensor:  # fmt: skip
    """As `clipped_ratio`, with the ratio pi / pi_old kept from `low` to `high` before its logarithm is undone: no loss is beyond
    high |A|, and a token further off gives no gradient."""
    ratio = (out.logprobs - batch.old).clamp(math.log(low), math.log(high)).exp()
    return -(ratio * batch.credit).minimum(ratio.clamp(1 - eps, 1 + eps) * batch.credit)


@credit
def within_sigmas(a: Tensor, batch: Batch, run: Run, *, sigmas: PositiveFloat = 3.0) -> Tensor:
    """No credit where it is more than so many standard deviations from the mean, over the decisions of rows with a verdict.

    Logged: outlying, the share of decisions that lose theirs.
    """
    where = with_verdict(batch)
    chosen = a[where]
    if chosen.numel() < 2:
        return a
    far = where & ((a - chosen.mean()).abs() > sigmas * chosen.std())
    run.log("outlying", float(far.sum() / where.sum()))
    return a.masked_fill(far, 0.0)


# ---- Whether a verdict follows from its analysis -------------------------------------------------------------------------


def end_of_analysis(judgement: str, form: Form, lines: int) -> str:
    """The last lines before the mark of a judgement and the tag that opens it."""
    marks = list(form.marks.pattern.finditer(judgement)) if form.marks else []
    before = judgement[: marks[-1].start()] if marks else judgement
    told = before.replace("<think>", "").replace("</think>", "").removesuffix("<answer>").strip()
    return "\n".join([line for line in told.splitlines() if line.strip()][-lines:])


@reward(over="groups", needs=("ref",))
def verdict_follows(
    groups: list[Group], run: Run, *, form: str = FORM, referee: str = "reference", lines: PositiveInt = 3,
    max_new: PositiveInt = 32,
) -> Scores:  # fmt: skip
    """Of a right verdict: 1 where the referee says that it is what the analysis says, -1 where it says that it is not, 0 where it
    says neither, or there is no analysis. 0 for a wrong verdict, which nobody is asked about.

    referee: a model of the run, or openai:URL#NAME.  lines: of the analysis that it reads, the last ones.  max_new: of its tokens.
    No verdict where the referee fails. Logged: follows, the share of right verdicts paid 1.
    """
    rows = [t for group in groups for t in group]
    judge, of = form_of(form), own_form("verdict", REFEREE, "referee")
    texts = {i: text for i, t in enumerate(rows) if (text := _to_compare(t, form, judge, lines))}
    said = judgements_by(run, referee, [of.asked(ask(""), [text]) for text in texts.values()], max_new, 0.0, False, of)
    scores = [Score(0.0, why="the verdict is wrong, or has no analysis")] * len(rows)
    for i, reply in zip(texts, said, strict=True):
        reading = of.read(reply)
        agreed = None if isinstance(reply, Failure) else 0.0 if reading.values is None else 2 * reading.values[0] - 1
        scores[i] = Score(agreed, why=f"the referee: {reading.said}", extracted=texts[i])
    if texts:
        run.log("follows", float(np.mean([scores[i].value == 1.0 for i in texts])))
    found = iter(scores)
    return [[next(found) for _ in group] for group in groups]


def _to_compare(t: Trajectory, form: str, judge: Form, lines: int) -> str:
    """What the referee reads of a judgement with a right verdict; empty for any other, or where nothing stands before it."""
    found = reading_of(t, form)
    if isinstance(found, str) or found[0].values is None or not agrees(found[0].values, found[1]):
        return ""
    analysis = end_of_analysis(t.reply, judge, lines)
    verdict = FIRST if found[0].values[0] > found[0].values[1] else SECOND
    return f"[End of the analysis]\n{analysis}\n\n[Verdict]\n{verdict}" if analysis else ""


# ---- the recipe ----------------------------------------------------------------------------------------------------------


def r1_reward_stablereinforce(
    base: Recipe | None = None, *, form: str = FORM, referee: str = "", consistency: NonNegativeFloat = 0.5,
    follows: Reward | None = None, shape: str = FORMAT, formed: NonNegativeFloat = 0.5, low: float = 1e-3, high: float = 1e3,
    sigmas: NonNegativeFloat = 3.0, eps: float = 0.2, beta: float = 1e-3, n: int = 1, problems: int = 128, distil: int = 0,
    votes: int = 1, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked (`trained_judge`).  referee: who says if a verdict follows from its analysis, a model beside
    the policy or openai:URL#NAME; empty: the policy as it started.  consistency: the weight of that, 0: nobody is asked.  follows:
    a reward of 1, 0 or -1 in place of the referee.  shape, formed: a regular expression that judgements should match, and its
    weight.  low, high: bounds of the ratio, before it is clipped to 1 +- eps.  sigmas: how far from the mean an advantage may be;
    0: however far.  beta: of the KL to the start.  n: judgements of a row.  problems, distil, votes: as in `trained_judge`."""
    base = base or reinforce_plus_plus(n=n, beta=beta).but(weighting=row_mean())
    base = trained_judge(base, form=form, n=n, problems=problems, distil=distil, votes=votes, wrong=0.0, lr=lr)
    who, beside = judge_beside(referee) if referee and not follows else ("reference", ())
    result = right_judgement(form=form, wrong=0.0)
    supported = follows or verdict_follows(form=form, referee=who)
    paid = result * (1 + consistency * supported) if consistency else result
    chain = base.required("credit")
    return base.but(
        reward=paid + formed * format_ok(pattern=shape) if formed else paid,
        credit=chain >> within_sigmas(sigmas=sigmas) if sigmas else chain,
        objective=preclipped_ratio(eps=eps, low=low, high=high),
        also=(*base.also, *beside) if consistency else base.also,
    )


fidelity = "core"
left_out = (
    "GPT-4o, whose judgements are imitated first, and which tells how hard a row is, so that easy ones are left out: `distil` with "
    "the column `judgement` imitates first; and the release's last bound on whitened advantages, 10"
)
data = Data(
    prompt="the question; its pictures, where a policy reads them",
    chosen="the better reply", rejected="the worse reply",
    judgement=Column("a judgement to imitate in the first steps (distil), where the better reply stands first", optional=True),
    judgement_reversed=Column("the same where the worse reply stands first", optional=True),
    rows=[
        {
            "prompt": "Describe a sunset at the sea in a sentence.", "chosen": "The sun sinks red into calm water.",
            "rejected": "It is a picture.",
            "judgement": "<think>Reply A says what is seen, reply B nothing. So A is better.</think><answer>[[A]]</answer>",
        },
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
        {"prompt": "What is 17 + 5?", "chosen": "22", "rejected": "23"},
    ],
)  # fmt: skip

# ---- its check: gradients of batches of which nearly all verdicts are right ----------------------------------------------


@measure
def drawn_gradients(
    problems: Sequence[Problem], run: Run, *, reward: Reward, credits: dict[str, Credit], rollout: Rollout, wrong: Share = 0.05,
    size: PositiveInt = 64, draws: PositiveInt = 200,
) -> dict[str, float]:  # fmt: skip
    """Batches of `size` judgements, each wrong with the chance `wrong`, drawn from those that `rollout` samples; nothing
    is trained.

    spikes.X: the 99th percentile of the norm of a batch's gradient under the credit X over its median.  norm.X: that median, over
    that of the first credit.  cosine.X: mean cosine with the gradient over all right and wrong judgements in that mixture.
    outlying: the share of batches in which the last credit differs from the first.  right: the share of the samples that is.
    """
    rows = [t for group in rollout(list(problems), run) for t in group]
    paid = np.array([float(s.total or 0.0) for (s,) in reward([[t] for t in rows], run)])
    right, other = np.flatnonzero(paid >= 1), np.flatnonzero(paid < 1)
    if not len(right) or not len(other):
        raise RewardlabError(f"drawn_gradients needs right and wrong judgements, and {len(right)} of {len(rows)} are right")
    lengths = torch.tensor([float(t.mask.sum()) for t in rows]).double()
    # (R, R) the inner products of the gradients of each row's mean log-prob
    products = logprob_gradient_products(run, rows) / lengths[:, None] / lengths[None]
    z = np.sqrt(wrong * (1 - wrong))
    truth = torch.zeros(len(rows)).double()
    truth[right], truth[other] = float(z / len(right)), float(-z / len(other))
    rng, found = np.random.default_rng(run.seed), {name: list[Tensor]() for name in credits}
    for _ in range(draws):
        chosen = np.where(rng.random(size) < wrong, rng.choice(other, size), rng.choice(right, size))
        batch = paid_at_the_end([rows[i] for i in chosen], paid[chosen].tolist(), size, torch.device("cpu"))
        for name, chain in credits.items():
            weight = torch.zeros(len(rows)).double()
            found[name].append(
                weight.index_add(0, torch.tensor(chosen), mean_credit(chain(batch.reward, batch, run), batch) / size)
            )
    return _told(found, products, truth) | {"right": float((paid >= 1).mean()), "n": float(draws)}


def _told(found: dict[str, list[Tensor]], products: Tensor, truth: Tensor) -> dict[str, float]:
    numbers: dict[str, float] = {}
    tables = {name: torch.stack(rows) for name, rows in found.items()}
    whole, base = float((truth @ products @ truth).sqrt()), 0.0
    for name, table in tables.items():
        norms = (table @ products * table).sum(1).clamp(min=0).sqrt()
        middle = float(norms.median())
        base = base or middle
        numbers |= {
            f"spikes.{name}": float(norms.quantile(0.99)) / max(middle, 1e-12), f"norm.{name}": middle / max(base, 1e-12),
            f"cosine.{name}": float(((table @ products @ truth) / (norms * whole).clamp(min=1e-12)).mean()),
        }  # fmt: skip
    first, *_, last = tables.values()
    return numbers | {"outlying": float(((first - last).abs().sum(1) > 1e-9).double().mean())}


WHITENED = to_go() >> whiten()
check = Check(
    says="where one verdict in twenty is wrong, the gradients of batches without outlying advantages have fewer spikes",
    versus=None, task="duels", measure="spikes.filtered", direction="lower", margin=0.5, against="spikes.plain",
    settings={"form": SMALL_FORM, "consistency": 0.0, "formed": 0.0, "problems": 8},
    by=drawn_gradients(
        reward=right_judgement(form=SMALL_FORM, wrong=0.0), credits={"plain": WHITENED, "filtered": WHITENED >> within_sigmas()},
        rollout=judgements(inner=independent(n=1), form=SMALL_FORM),
    ),
    problems=200, steps=1,
    tried="one development seed: 4.3, and 3.5 with all advantages. Six steps of training at a rate of 1e-3, four updates of each "
    "batch, one run a side: right verdicts fall from 64% to 42% with both, since half are wrong and no advantage is outlying",
    finding="the largest gradients of a hundred are 4.3 times the median with the filter, 2.9 times without: it leaves out rare "
    "wrong verdicts, until they are a tenth of a batch. The median is a third as large, and points a little closer to the "
    "gradient of all verdicts (cosine .34, .24). Ratios beyond 1000 are tested in units alone",
    version=2, replaces="what was tried was told wrong: on the development seed the filter had more spikes, and not fewer",
)  # fmt: skip
baseline = "reinforce_plus_plus"
