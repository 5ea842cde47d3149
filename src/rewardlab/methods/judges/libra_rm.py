"""Libra-RM: a verifier that thinks before its verdict and needs no reference answer; its verdicts pay a policy on bare prompts.

    judge:   j_1 ... j_m ~ pi(. | x, y);   imitate one j with v(j) = label, of cases where not all m are right
             then RL:  r(j) = 1[v(j) = label],   v(j) in {correct, incorrect};   pairs give either reply, as often
    policy:  r(y) = v(j),   j ~ judge(. | x, y)

Problems with checkable answers are, with replies to them, problems of judging with checkable verdicts: the label takes the answer's
place in training, and the verifier itself never reads the answer. So it can judge replies to prompts that nobody has answered, in
any format, where rules need a reference and a fixed form. A verifier that only guesses is right on half of balanced cases, so that
what is imitated must come from cases that it does not always get right.

Zhou et al. 2025, arXiv:2507.21645, by its abstract and by the dataset card of meituan/Libra-Bench, since no code was released:
pointwise judging, labels of correctness, rejection sampling with SFT and then RL, accuracy by subset and then averaged (the column
`subset` of a row), as many right as wrong replies; a summary says that RL pays right verdicts and charges for length. (inferred):
the reward, 1 for the right verdict and 0 otherwise; GRPO; m = 8; 20 steps of imitation; the words, and [[yes]] and [[no]] for the
verdict; that cases of which all judgements are right are left out.

`libra_rm` trains the verifier; with `judge`, the policy that this one pays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.clients.messages import Failure
from rewardlab.core import Problem, Recipe, Run, Sampling, measure
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import accuracy_of, judged
from rewardlab.judges.forms import Form, Kind
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import judge_beside, judgements_first, trained_judge
from rewardlab.rewards.judge import judge as paid_by
from rewardlab.rewards.judge import judgements_by
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rollouts.ranked import written
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.answers import after_thinking
from rewardlab.worlds.mirrors import FORM as SMALL

VERIFY = (
    "Below are a problem and a response to it. No reference answer is given. Think step by step whether the final answer of the "
    "response is correct: work on the problem yourself where that helps, and check what the response does. End with your verdict "
    "on a line of its own, [[yes]] if the final answer is correct, or [[no]] if it is not.\n\n## Problem\n{prompt}\n\n## Response\n"
    "{reply}\n"
)
KIND: Kind = "verdict"
TOKENS = 2048
"""Of a judgement by which a policy is paid."""


def without_reference(form: str) -> Form:
    """The form of this name or text. Raises RewardlabError for one that shows the gold answer, or gives other than verdicts."""
    of = form_of(form, KIND)
    if of.kind != KIND:
        raise RewardlabError(f"libra_rm asks for verdicts on one reply, and the judge's form {of.name} is of the kind {of.kind!r}")
    if "{answer}" in of.text + of.system:
        raise RewardlabError(f"libra_rm judges without a reference: leave {{answer}} out of the judge's form {of.name}")
    return of


# ---- what is measured ----------------------------------------------------------------------------------------------------


@measure
def accuracy_by_subset(problems: Sequence[Problem], run: Run, *, form: str = VERIFY, k: PositiveInt = 1) -> dict[str, float]:
    """`judgement_accuracy` of verdicts, and on replies whose label is right or wrong alone: `on_right`, `on_wrong`.

    by_subset: the mean over subsets (the column `subset`) of the share of right verdicts; that of a row without one is "".  k:
    judgements of a reply.
    """
    found = judged(problems, run, form_of(form, KIND), k)
    subsets: dict[str, list[bool]] = defaultdict(list)
    sides: dict[str, list[bool]] = defaultdict(list)
    for asked, row in zip(found.asked, found.right, strict=True):
        subsets[str(problems[asked.row].meta.get("subset") or "")] += row
        sides["on_right" if asked.question.meta["worth"][0] > 0.5 else "on_wrong"] += row
    return {
        **accuracy_of(found), **{side: float(np.mean(row)) for side, row in sides.items()},
        "by_subset": float(np.mean([np.mean(row) for row in subsets.values()])),
    }  # fmt: skip


@measure
def held_right(
    problems: Sequence[Problem], run: Run, *, model: str = "judge", form: str = VERIFY, max_new: PositiveInt = TOKENS
) -> dict[str, float]:  # fmt: skip
    """held_right: the share of the policy's replies that the judge finds right; one that it cannot judge counts as wrong.

    Where the rows have answers: pass@1, the share that is right; trusted: how often the judge is right about it. A policy that
    learns to please the judge alone has a held_right that rises and a `trusted` that falls.
    """
    aside, of = run.for_evaluation(), form_of(form, KIND)
    groups = written(list(problems), aside, 1, "policy", Sampling(run.max_new))
    asked = [of.asked(g[0].problem, [after_thinking(g[0].reply)]) for g in groups]
    said = judgements_by(aside, model, asked, max_new, 0.0, False, of)
    values = [None if isinstance(j, Failure) else of.read(j).values for j in said]
    held = [v is not None and v[0] > 0.5 for v in values]
    truth = [row[0].value for row in aside.verify(groups, aside)] if aside.verify else []
    known = [(x >= 1, h) for x, h in zip(truth, held, strict=False) if x is not None]
    right, trusted = [ok for ok, _ in known], [ok == h for ok, h in known]
    return {
        "held_right": float(np.mean(held)), "n": float(len(held)),
        **({"pass@1": float(np.mean(right)), "trusted": float(np.mean(trusted))} if known else {}),
    }  # fmt: skip


# ---- the recipes ---------------------------------------------------------------------------------------------------------


def libra_rm(
    base: Recipe | None = None, *, form: str = VERIFY, distil: int = 20, sft_lr_scale: float = 5.0, tries: int = 8,
    easy: bool = False, n: int = 8, problems: int = 16, votes: int = 1, lr: float | None = None, judge: str = "",
    max_judgement: PositiveInt | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked, with {prompt} and {reply} and without {answer}.  distil, sft_lr_scale: first steps, which
    imitate accepted judgements, of `tries` of a reply, and their learning rate as a multiple of the recipe's.  easy: imitate
    those of replies that all are right about, too.  n: judgements of a reply, or replies to a prompt, in RL.  problems: rows of
    a step.  votes: judgements of a held-out reply.  judge: a trained verifier, a model or openai:URL#NAME: it is then a policy
    that is trained.  max_judgement: tokens of its judgements, if not 2048."""
    base = base or grpo(n=n)
    without_reference(form)
    if judge:
        return _by_verdicts(base, judge, form, max_judgement or TOKENS).but(problems=problems, lr=lr)
    base = trained_judge(base, form=form, kind=KIND, n=n, problems=problems, wrong=0.0, lr=lr)
    first = judgements_first(
        first=distil, by=right_judgement(form=form, kind=KIND, wrong=0.0), form=form, kind=KIND, n=tries, easy=easy,
        sft_lr_scale=sft_lr_scale, inner=base.loop,
    )  # fmt: skip
    return base.but(loop=first if distil else base.loop, measure=accuracy_by_subset(form=form, k=votes))


def _by_verdicts(base: Recipe, judge: str, form: str, max_new: int) -> Recipe:
    model, others = judge_beside(judge)
    return base.but(
        reward=paid_by(model=model, kind=KIND, template=form, expected=False, max_new=max_new),
        measure=held_right(model=model, form=form, max_new=max_new),
        also=(*base.also, *others),
    )


fidelity = "reading"
left_out = (
    "Libra Bench itself, whose rows can be read as `reply` and `label`; ordinary problems of reasoning, which are trained on "
    "beside those of judging; sampling the replies that are judged, which rows bring; the penalty for long judgements in RL, whose "
    "form is not known"
)
data = Data(
    chosen=Column("a reply that is right, for a verifier that is trained", optional=True),
    rejected=Column("one that is wrong", optional=True),
    reply=Column("in their place: a reply", optional=True),
    label=Column("whether it is right: yes or no", optional=True),
    subset=Column("a name for the source of the row, over which accuracy is averaged", optional=True),
    judgement=Column("a judgement of the reply, or of the chosen one, to imitate in the first steps", optional=True),
    rows=[
        {"prompt": "What is 3 times 14?", "chosen": "3 x 14 = 42.\nAnswer: 42", "rejected": "3 x 14 = 34.\nAnswer: 34"},
        {"prompt": "How many days are in 6 weeks?", "reply": "6 x 7 = 42.\nAnswer: 42", "label": "yes", "subset": "calendar",
         "judgement": "A week has 7 days, and 6 x 7 is 42, as it says. [[yes]]"},
        {"prompt": "What is half of 46?", "reply": "It is 24.\nAnswer: 24", "label": "no", "subset": "halves"},
    ],
)  # fmt: skip

check = Check(
    says="a verifier that first imitates right judgements of replies that it does not always judge right, and then is rewarded for "
    "its verdicts, gives more right verdicts without a reference than at its start",
    versus=None, task="mirrors", measure="judged", direction="higher", margin=0.05, against="before.judged",
    settings={"form": SMALL, "sft_lr_scale": 3.0}, problems=150, steps=120,
    tried="40 steps at 3e-4, of which 20 imitate, one run: 62% to 63%; of right replies 42% to 63%, of wrong ones 81% to 64%; "
    "as it is now, one development seed: 60% to 62%",
    finding="from 60% right verdicts it comes to 65%: it finds 72% of right replies right, 42% at first, and 59% of wrong ones "
    "wrong, 77% at first",
    version=2, replaces="20 steps of imitating its own judgements at ten times the rate left it at chance, whence rewards did not "
    "take it",
)  # fmt: skip
baseline = "trained_judge"
