"""InternLM-Math: one model learns to solve, to judge and to use tools as text-to-text tasks, and reranks its own samples.

    solve:  question -> solution        judge:  question, solution -> check of its lines, "Final: right" or "Final: wrong"
    tool:   question -> solution in which code and what it prints take turns
    loss = -mean over tokens of log pi(reply), over all of them;    answer = the sample that its own verdict finds right most often

A reward model beside the policy is another model to train, and knows no more than the policy could; as text, a verdict on the
answer (outcome) or on every line (process) is one more ability of the same weights, in the words of its reasoning.

Ying et al. 2024, arXiv:2402.06332. Its prompts end with the solution, and name no form of the verdict: "Given a question and an
answer, check is it correct?" for the outcome, "check correctness of each step" for the process (InternLM/InternLM-Math,
0ccaaad, README). (inferred): the words of ours, which ask for a verdict that can be read, that it is sampled with its check,
where the README prefers probabilities of tokens (`soft`), and `share`, by which lessons in judging are made in training: of the
policy's own solutions, as the verifier judges them, with the outcome alone.

Rows of all abilities are mixed by `rewardlab data mix`.
"""

from dataclasses import replace

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.reranked import reranked
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.own_verdict import ASK, RIGHT, WRONG, own_verdict, to_check
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import Share

LESSON = "lesson"


@rollout(wraps="inner")
def with_lessons_in_judging(
    problems: list[Problem], run: Run, *, inner: Rollout, share: Share = 0.5, ask: str = ASK, right: str = RIGHT, wrong: str = WRONG
) -> list[Group]:
    """The groups of `inner`; the last `share` of the problems become judging tasks on a sampled reply.

    Problems whose reply gets no verdict are left to `inner`. Logged: judged_right, the share of lessons on right solutions.
    """
    kept = len(problems) - round(share * len(problems))
    if kept == len(problems):
        return inner(problems, run)
    if run.verify is None:
        raise RewardlabError("lessons in judging need the task's verifier, and this run has none: name a task, or set share=0")
    tried = independent(n=1)(problems[kept:], run)
    lessons, others, rights = [], list(problems[:kept]), 0
    for (t,), (score,) in zip(tried, run.verify(tried, run), strict=True):
        if score.value is None:
            others.append(t.problem)
            continue
        ok = score.value >= 1.0
        rights += ok
        lesson = to_check(t.problem, t.reply, ask, right, wrong)
        lessons.append(replace(lesson, meta={**lesson.meta, LESSON: f"Final: {right if ok else wrong}"}))
    if lessons:
        run.log("judged_right", rights / len(lessons))
    return [*(inner(others, run) if others else []), *(recorded(fields=(LESSON,))(lessons, run) if lessons else [])]


def internlm_math(
    base: Recipe | None = None, *, share: float = 0.5, ask: str = ASK, right: str = RIGHT, wrong: str = WRONG, checks: int = 1,
    check_tokens: int = 256, soft: bool = False, n: int = 8,
) -> Recipe:  # fmt: skip
    """share: of each step that are lessons in judging own solutions; 0: the rows alone teach it.  ask: what the judge reads, with
    {question}, {solution} or {steps}.  right, wrong: its verdicts.  checks, check_tokens: of each of n samples that are reranked.
    soft: a check counts by the probability of its verdict.
    """
    base = base or sft()
    words = {"ask": ask, "right": right, "wrong": wrong}
    lessons = with_lessons_in_judging(inner=base.required("rollout"), share=share, **words)
    judged = own_verdict(**words, samples=checks, max_new=check_tokens, soft=soft)
    return base.but(rollout=lessons if share else base.rollout, measure=reranked(by=judged, n=n))


fidelity = "core"
left_out = (
    "continual pretraining, Lean 4 (no prover is a dependency here) and augmentation of questions, data of the same kind; lessons "
    "in which of two answers is better; no released code trains, so the mixture is one's own rows; "
    "lessons in judging are of the policy's own solutions, which is ours"
)
data = Data(
    prompt="a question, or a lesson in another ability, such as checking a solution",
    solution="the reply to imitate; for tools a list in which replies and what the tool printed take turns",
    answer=Column("the gold answer, by which the policy's own solutions are judged for its lessons in judging", optional=True),
    rows=[
        {
            "prompt": "A pen costs 3 and a book 8. What do 2 pens and a book cost?",
            "solution": "2 pens cost 6.\n6 + 8 = 14.\nAnswer: 14",
            "answer": "14",
        },
        {"prompt": "What is 15% of 60?", "solution": "$0.15 \\cdot 60 = 9$, so the answer is \\boxed{9}.", "answer": "9"},
        {
            "prompt": "Compute 2 to the power of 10 with Python.",
            "solution": ["print(2 ** 10)", "1024", "Answer: 1024"],
            "answer": "1024",
        },
    ],
)

SMALL = {"share": 0.0, "ask": "{question}\n{steps}", "right": "+", "wrong": "-", "check_tokens": 96, "problems": 16}
claim = Claim(
    says="trained to solve and to judge, a policy's own verdict picks right ones of its samples oftener than their majority does",
    versus=None, task="versatile:difficulty=4", measure="reranked", direction="higher", margin=0.031, against="majority",
    settings={**SMALL, "lr": 1e-4, "checks": 3}, problems=200, steps=40,
    fault=Within("majority", high=0.9, says="the answer that most of the samples give"),
    judge=Within("by_auc", low=0.6, says="right samples above wrong ones to the same problem, by its own verdict"),
    learns=None, start=None,
    finding="its own verdict picks a right one of eight samples for 87% of the problems, the majority for 85%; one sample is "
    "right in 62%. Verdicts tell right from wrong, but add little to counting",
)  # fmt: skip
