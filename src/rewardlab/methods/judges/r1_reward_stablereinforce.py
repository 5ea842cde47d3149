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

import numpy as np
from torch import Tensor

from rewardlab.clients.messages import Failure
from rewardlab.core import Batch, Group, Outputs, Recipe, Run, Score, Scores, Trajectory, ask, credit, objective
from rewardlab.credit.group import with_verdict
from rewardlab.data.columns import Column, Data
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
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt

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
baseline = "reinforce_plus_plus"
