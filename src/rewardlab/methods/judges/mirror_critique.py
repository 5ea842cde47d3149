"""Mirror-Critique: a verifier imitates critiques written with the gold solution in view, and then is rewarded for its verdicts.

    critic:    c_1 ... c_n ~ q(. | question, gold solution, candidate);   kept: the first whose verdict is the candidate's label
    SFT:       -log pi(c | question, candidate), without the gold solution;    then RL:  r = 1[verdict of pi's critique = label]
    test time: s_i = the share of m critiques that find candidate i right;   a* = argmax_a  sum over candidates with answer a of
               (s_i + .15);   abstain where the mean s_i of a* is below a threshold

Rewards for verdicts alone cannot say what is wrong with a solution, and a model that is asked without help seldom knows. Shown the
gold solution, even a small one can point to where the candidate departs from it, and the verifier learns from that why, and not
only that it is wrong. Minority answers can win a vote that is weighted by such verdicts.

Yang et al. 2025, arXiv:2509.23152, and yangzhch6/Mirror-Critique, 2c273d5: format_to_critique_data.py (the critic's prompt),
gen_critique/*.sh (two critiques of a candidate at temperature .3), format_sft_critique_data.py (the first accepted one),
format_rlvr_critique_data_balance.py (a right and a wrong candidate of each question), rlvr-verify/*.sh (GRPO without the standard
deviation, n = 8, no KL) and test-time-eval.py (the weight .15, K = 16 candidates of 16 critiques; honesty: +1 right, 0 abstained,
-1 wrong; a candidate votes, in the plain majority too, where it has an answer and a verdict that can be read). There a tie counts
by the share of its answers that are right, and here the first one wins; nothing is abstained from there (a threshold of 0). The
default threshold of .5 is ours (inferred), as are the wording of prompts and the marks [[yes]] and [[no]], there boxed True and
False. `shown=""` leaves the gold solution out. With `candidates`, prompts are answered by that vote, doubtful ones by `unsure`.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import (
    Group,
    Learner,
    Loop,
    Problem,
    Recipe,
    Run,
    Sampling,
    Score,
    Trajectory,
    loop,
    measure,
    rollout,
    seed_of,
    select,
)
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import SHOWN, WORTH, agrees, cases_of, to_judge
from rewardlab.judges.forms import Form, Kind
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.best_of_n import best_of_n
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import imitated_first, judge_beside, trained_judge
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.judge import judge
from rewardlab.rollouts.judgements import nothing_accepted
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Share
from rewardlab.text.votes import answer_of
from rewardlab.util.ranking import auc_of
from rewardlab.worlds.mirrors import FORM as SMALL
from rewardlab.worlds.mirrors import SHOWN as SMALL_SHOWN

VERIFY = (
    "Below are a question and a solution to it. Go through the solution step by step, in numbered steps, and explain why each is "
    "right or wrong. End with a line that holds nothing but [[yes]] if the final answer of the solution is right, or [[no]] if it "
    "is not.\n\n## Question\n{prompt}\n\n## Solution\n{reply}\n"
)
MIRROR = (
    "Below are a question, its correct solution, which the student has not seen, and a student's solution. Go through that "
    "solution step by step, in numbered steps, and explain why each is right or wrong, by what the correct solution shows; but "
    "never mention that there is one. End with a line that holds nothing but [[yes]] if the final answer of the student's solution "
    "is right, or [[no]] if it is not.\n\n## Question\n{prompt}\n\n## Correct solution\n{solution}\n\n## Solution\n{reply}\n"
)
CRITIC = "critic"
KIND: Kind = "verdict"


# ---- critiques by a critic who sees the gold solution --------------------------------------------------------------------------


@rollout(rows=lambda **_: 1)
def mirrored_critiques(
    problems: list[Problem], run: Run, *, form: str = VERIFY, shown: str = MIRROR, n: PositiveInt = 2, writer: str = CRITIC,
    temperature: NonNegativeFloat = 0.3,
) -> list[Group]:  # fmt: skip
    """The first of n critiques of a candidate of each row whose verdict is right, recorded as the policy's reply to `form`.

    writer: the model that writes them, in reply to `shown`, which has the gold solution in the place {solution} (empty: to `form`).
    Logged: accepted, the share of all critiques with a right verdict. Where there is none, the first question is returned without a
    critique, from which nothing is learnt, so that there is a batch.
    """
    plain, mirror = form_of(form, KIND), form_of(shown or form, KIND)
    asked, helped = [], []
    for p in problems:
        rng = random.Random(seed_of("mirror_critique", run.seed, run.step, p.key))
        case = (found := cases_of(p, plain))[rng.randrange(len(found))]
        asked.append(to_judge(p, case, plain))
        helped.append(to_judge(p, case, mirror))
    said, _ = answers(run, writer, helped, n, Sampling(run.max_new, temperature))
    kept = [[text for text in texts if _right(p, text, plain)] for p, texts in zip(asked, said, strict=True)]
    run.log("accepted", sum(map(len, kept)) / max(1, sum(map(len, said))))
    chosen = [(p, texts[0]) for p, texts in zip(asked, kept, strict=True) if texts]
    if not chosen:
        return nothing_accepted(asked, run)
    begun = run.policy.read([Trajectory(p) for p, _ in chosen], [p.prompt for p, _ in chosen])
    return [[t] for t in run.policy.write(begun, [text for _, text in chosen])]


def _right(question: Problem, critique: str, form: Form) -> bool:
    values = form.read(critique).values
    return values is not None and agrees(values, question.meta[WORTH])


@loop(wraps="inner", first=("first",))
def mirrored_first(
    recipe: Recipe, run: Run, ops: Any, *, first: NonNegativeInt, form: str = VERIFY, shown: str = MIRROR, n: PositiveInt = 2,
    writer: str = CRITIC, sft_lr_scale: PositiveFloat = 5.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Imitate mirrored critiques in the first `first` training steps, and then train by the recipe, as `imitated_first` does."""
    kept = mirrored_critiques(form=form, shown=shown, n=n, writer=writer)
    imitated_first(first=first, kept=kept, sft_lr_scale=sft_lr_scale, inner=inner)(recipe, run, ops)


# ---- scores of candidates, votes and abstention ----------------------------------------------------------------------------


def weighed_answer(answers: Sequence[Any], scores: Sequence[float | None], bonus: float = 0.15) -> tuple[Any, float]:
    """The answer with the largest sum of (score + bonus), and the mean score of its candidates; (None, 0) where none votes.

    Candidates without an answer or a score do not vote; of equal sums the first answer wins.
    """
    votes: dict[Any, list[float]] = defaultdict(list)
    for answer, score in zip(answers, scores, strict=True):
        if answer is not None and score is not None:
            votes[answer].append(score)
    if not votes:
        return None, 0.0
    winner = max(votes, key=lambda a: math.fsum(s + bonus for s in votes[a]))
    return winner, math.fsum(votes[winner]) / len(votes[winner])


@measure
def verified_votes(
    problems: Sequence[Problem], run: Run, *, form: str = VERIFY, critiques: PositiveInt = 4, threshold: Share = 0.5,
    bonus: NonNegativeFloat = 0.15,
) -> dict[str, float]:  # fmt: skip
    """The policy as a verifier of held-out candidates, by `critiques` of each.

    verified: the share of critiques with a right verdict, an unread one being wrong.  auc: how often the score s of a right
    candidate is above that of a wrong one. Of rows with several candidates: voted, the share whose weighted vote is right;
    majority: whose plain vote is; answered: where the winner's mean score is at least `threshold`; right_if_answered; honesty: +1
    right, 0 abstained, -1 wrong, on average.
    """
    of = form_of(form, KIND)
    cases = [[to_judge(p, case, of) for case in cases_of(p, of)] for p in problems]
    said = iter(answers(run, "policy", [q for row in cases for q in row], critiques, Sampling(run.max_new))[0])
    rows = [[(q, next(said)) for q in row] for row in cases]
    right = [_right(q, text, of) for row in rows for q, texts in row for text in texts or [""]]
    scores = [[_score(texts, of) for _, texts in row] for row in rows]
    labels = [[q.meta[WORTH][0] > 0.5 for q, _ in row] for row in rows]
    known = [(s, ok) for row in zip(scores, labels, strict=True) for s, ok in zip(*row, strict=True) if s is not None]
    low, high = mean_interval([float(x) for x in right])
    return {
        "verified": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)), "auc": auc_of(known),
        **_votes(rows, scores, labels, threshold, bonus),
    }  # fmt: skip


def _score(texts: Sequence[str], form: Form) -> float | None:
    values = [read[0] for text in texts if (read := form.read(text).values)]
    return sum(values) / len(values) if values else None


def _votes(rows: list[Any], scores: list[Any], labels: list[Any], threshold: float, bonus: float) -> dict[str, float]:
    voted, plain, answered = [], [], []
    for row, own, known in zip(rows, scores, labels, strict=True):
        if len(row) < 2:
            continue
        answers = [answer_of(q.meta[SHOWN][0]) for q, _ in row]
        truth = {a for a, ok in zip(answers, known, strict=True) if ok and a is not None}
        winner, mean = weighed_answer(answers, own, bonus)
        voted.append(winner in truth)
        answered.append(winner is not None and mean >= threshold)
        plain.append(weighed_answer(answers, [None if s is None else 1.0 for s in own], 0.0)[0] in truth)
    if not voted:
        return {}
    given = [ok for ok, said in zip(voted, answered, strict=True) if said]
    return {
        "voted": float(np.mean(voted)), "majority": float(np.mean(plain)), "answered": float(np.mean(answered)),
        **({"right_if_answered": float(np.mean(given))} if given else {}),
        "honesty": sum(1.0 if ok else -1.0 for ok in given) / len(voted),
    }  # fmt: skip


# ---- answers, chosen by the verifier -------------------------------------------------------------------------------------------


@select
def weighed_vote(
    group: Group, scores: list[Score], run: Run, *, bonus: NonNegativeFloat = 0.15, threshold: Share = 0.5, unsure: str = ""
) -> Trajectory:  # fmt: skip
    """Of the replies with the answer that wins the vote weighed by their scores (`weighed_answer`), the one with the highest.

    unsure: what is replied instead where the mean score of that answer is below `threshold`, or no reply has an answer and a score;
    empty: always answer; the first reply where there is no vote.
    """
    found, totals = [answer_of(t.reply) for t in group], [s.total for s in scores]
    winner, mean = weighed_answer(found, totals, bonus)
    if unsure and (winner is None or mean < threshold):
        return run.policy.write(run.policy.read([Trajectory(group[0].problem)], [group[0].problem.prompt]), [unsure])[0]
    voting = [i for i, x in enumerate(totals) if x is not None and found[i] is not None and found[i] == winner]
    return group[max(voting, key=lambda i: totals[i] or 0.0)] if voting else group[0]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def mirror_critique(
    base: Recipe | None = None, *, critic: str = "copy:policy", form: str = VERIFY, shown: str = MIRROR, first: int = 20,
    sft_lr_scale: float = 5.0, tries: int = 2, n: int = 8, problems: int = 16, critiques: int = 16, threshold: float = 0.5,
    lr: float | None = None, candidates: NonNegativeInt = 0, checker: str = "", unsure: str = "",
) -> Recipe:  # fmt: skip
    """critic: who writes the critiques to imitate, openai:URL#NAME or a model (`Learner.init`).  form: what the verifier is
    asked, with {prompt} and {reply}.  shown: what the critic is, with {solution} too; empty: the same.  first, sft_lr_scale:
    steps that imitate, and their learning rate as a multiple of the recipe's.  tries: critiques of a candidate.  n: the
    verifier's, in RL.  problems: rows of a step.  critiques: of a candidate, held out or answered.  threshold: of the score
    below which no answer is given.  candidates: more than 0: so many replies to a prompt, of which the weighed vote chooses one
    (`rewardlab answer`; the paper takes 16), and nothing is trained.  checker: who criticises them, a trained verifier beside
    the policy; empty: the policy itself.  unsure: what is replied below the threshold; empty: the answer all the same."""
    if candidates:
        return _by_vote(base, candidates, checker, form, critiques, threshold, unsure)
    base = base or grpo(n=n)
    base = trained_judge(base, form=form, kind=KIND, n=n, problems=problems, wrong=0.0, lr=lr)
    return base.but(
        credit=center() >> to_go(),
        loop=mirrored_first(first=first, form=form, shown=shown, n=tries, sft_lr_scale=sft_lr_scale, inner=base.loop)
        if first
        else base.loop,
        measure=verified_votes(form=form, critiques=critiques, threshold=threshold),
        also=(*base.also, Learner(CRITIC, critic, Recipe(), every=0)) if first else base.also,
    )


def _by_vote(
    base: Recipe | None, candidates: int, checker: str, form: str, critiques: int, threshold: float, unsure: str
) -> Recipe:  # fmt: skip
    answering = best_of_n(base, n=candidates)
    model, others = judge_beside(checker) if checker else ("policy", ())
    return answering.but(
        reward=judge(
            model=model, kind=KIND, template=form, samples=critiques, temperature=1.0, max_new=0,
            expected=False,
        ),
        select=weighed_vote(threshold=threshold, unsure=unsure), also=(*answering.also, *others),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "sampling the candidates, which rows bring: a right and a wrong one for each question in RL, and a right one beside wrong ones "
    "with different answers in imitation; and questions that are solved too often, which it drops"
)
data = Data(
    solution="the gold solution, which the critic reads and the verifier does not",
    chosen=Column("a candidate solution that is right", optional=True),
    rejected=Column("one that is wrong", optional=True),
    reply=Column("in their place: a candidate", optional=True),
    label=Column("whether it is right: yes or no", optional=True),
    replies=Column("or a list of candidates, whose answers are voted on when they are held out", optional=True),
    scores=Column("1 or 0 for each of them", optional=True),
    rows=[
        {
            "prompt": "What is 3 times 14?", "solution": "3 x 10 = 30, 3 x 4 = 12, 30 + 12 = 42.\nAnswer: 42",
            "chosen": "14 + 14 + 14 = 42.\nAnswer: 42", "rejected": "3 x 14 = 34.\nAnswer: 34",
        },
        {
            "prompt": "How many days are in 6 weeks?", "solution": "6 x 7 = 42.\nAnswer: 42",
            "replies": ["6 x 7 = 42.\nAnswer: 42", "6 + 7 = 13.\nAnswer: 13", "6 x 5 = 30.\nAnswer: 30"], "scores": [1, 0, 0],
        },
        {"prompt": "What is half of 46?", "solution": "46 / 2 = 23.\nAnswer: 23", "reply": "It is 24.\nAnswer: 24", "label": "no"},
    ],
)  # fmt: skip

SETTINGS = {"form": SMALL, "first": 20, "critiques": 4, "sft_lr_scale": 3.0}
check = Check(
    says="a verifier that first imitates critiques written with the gold solution in view gives more right verdicts than one that "
    "imitates its own accepted critiques, after as many steps of imitation and of RL",
    versus="mirror_critique", task="mirrors", measure="verified", direction="higher", margin=0.03,
    settings={**SETTINGS, "shown": SMALL_SHOWN, "critic": "embedded:mirrors:shown=true"}, versus_settings={**SETTINGS, "shown": ""},
    problems=150, steps=40, learns=None,
    finding="imitating critiques that were written with the solution in view leads to 64% right verdicts, imitating its own "
    "accepted ones to 67%, from 61%; the vote that they weigh is right in 67% of questions either way, the plain "
    "majority in 55%",
)  # fmt: skip
baseline = "trained_judge"
