"""One-shot CFT: fine-tune on critiques of many solutions of a single problem, which improves solving of other problems.

    loss = -mean over tokens of log pi(critique | problem, candidate solution);    then it is asked to solve, not to criticise

The right solution of one problem is one text, which is soon learnt by heart. Candidates of several models fail in different ways,
and the critique of each says what is wrong and works it out right, so one problem gives hundreds of different lessons. A critique
whose conclusion the verifier contradicts is left out.

Wang et al. 2025, arXiv:2506.03295; critique fine-tuning on many problems: arXiv:2501.17703. The conclusion, "Conclusion: right"
or "wrong", is that of the released prompts (TIGER-AI-Lab/One-Shot-CFT, 944efc7); the words in which the policy is asked for a
critique and the verifier's check of the conclusion are (inferred).
"""

import re
from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Run, Trajectory, Turn, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.methods.baselines.sft import sft
from rewardlab.rollouts.recorded import recorded
from rewardlab.text.filled import filled
from rewardlab.worlds.critiques import ASK as SHORT

ASK = (
    "Please critique whether the following solution to the question is correct.\n\nQuestion:\n{question}\n\nSolution:\n{candidate}"
)
CONCLUSION = re.compile(r"Conclusion: *\W*(right|wrong)", re.IGNORECASE)
ATTEMPTS = 20


@rollout
def critiques(
    problems: list[Problem], run: Run, *, candidate: str = "candidate", critique: str = "critique", ask: str = ASK
) -> list[Group]:
    """Recorded critiques, each as the reply to a problem with a candidate solution. Those whose conclusion the verifier contradicts
    are replaced by further ones, ATTEMPTS times at most. Logged: their share, contradicted."""
    agreed: list[Problem] = []
    wanted, looked_at = len(problems), 0
    for _ in range(ATTEMPTS):
        looked_at += len(problems)
        agreed += agreeing(problems, run, candidate, critique)
        if len(agreed) >= wanted or run.more_problems is None:
            break
        problems = run.more_problems(wanted - len(agreed))
    if not agreed:
        raise NothingKept(f"the verifier contradicts the conclusions of all {looked_at} critiques: are they of these answers?")
    run.log("contradicted", 1 - len(agreed) / looked_at)
    return recorded(fields=(critique,))([asked(p, ask, p.meta[candidate]) for p in agreed], run)


def agreeing(problems: Sequence[Problem], run: Run, candidate: str, critique: str) -> list[Problem]:
    """The problems but those whose critique concludes what the verifier contradicts. No conclusion, or no verdict, is no reason."""
    for column in (candidate, critique):
        if lacking := next((p for p in problems if not isinstance(p.meta.get(column), str)), None):
            raise RewardlabError(f"problem {lacking.question[:60]!r} has no text {column!r}: rows need a solution and its critique")
    if run.verify is None:
        return list(problems)
    written = [[Trajectory(p, (Turn("policy", np.zeros(1, np.int64), text=p.meta[candidate]),), "end")] for p in problems]
    kept = []
    for p, (score,) in zip(problems, run.verify(written, run), strict=True):
        # the last one counts: a critique may quote another
        said = CONCLUSION.findall(p.meta[critique])
        if not said or score.value is None or (said[-1].lower() == "right") == (score.value >= 1.0):
            kept.append(p)
    return kept


def asked(problem: Problem, ask: str, candidate: str) -> Problem:
    """The problem of criticising a candidate solution: a system message stays, the last user message is put into words anew."""
    return problem.reworded(filled(ask, question=problem.question, candidate=candidate))


def one_shot_cft(
    base: Recipe | None = None, *, candidate: str = "candidate", critique: str = "critique", ask: str = ASK
) -> Recipe:  # fmt: skip
    """candidate, critique: columns of the data.  ask: what the policy reads, with {question} and {candidate} in it."""
    base = base or sft()
    return base.but(rollout=critiques(candidate=candidate, critique=critique, ask=ask))


fidelity = "core"
left_out = "sampling the candidates and the critiques, which models of any kind write beforehand"
data = Data(
    prompt="the problem, the same in all rows or one of a few; held-out problems are others (--test FILE)",
    answer="the gold answer, by which critiques with a wrong conclusion are left out",
    candidate=Column("a solution that some model wrote, right or wrong", setting="candidate"),
    critique=Column("what a teacher says of it, best with `Conclusion: right` or `wrong` at the end", setting="critique"),
    rows=[
        {
            "prompt": "What is 3 times 14?",
            "answer": "42",
            "candidate": "3 x 10 = 30 and 3 x 4 = 12, so 42.\nAnswer: 42",
            "critique": "Both products are right, and 30 + 12 = 42.\nConclusion: right",
        },
        {
            "prompt": "What is 3 times 14?",
            "answer": "42",
            "candidate": "3 x 14 = 34 \\boxed{34}",
            "critique": "3 x 14 is 30 + 12 = 42, not 34.\nConclusion: wrong [END]",
        },
        {
            "prompt": "How many days are in 6 weeks?",
            "answer": "42",
            "candidate": "6 + 7 = 13.\nAnswer: 13",
            "critique": "Weeks must be multiplied by 7: 6 x 7 = 42.\nConclusion: wrong",
        },
    ],
)

RATE = {"lr": 3e-4, "problems": 16}
claim = Claim(
    says="critiques of many solutions of one problem teach more about other problems than its right solution, in equal updates",
    versus="sft", task="critiques", measure="pass@1", direction="higher", margin=0.069, settings={**RATE, "ask": SHORT},
    versus_settings=RATE, steps=40,
    fault=Within("pass@1", high=0.45, says="of other problems, after SFT on the one solution; 0.34 at the start"), learns=None,
    tried="rates 1e-3 and 3e-4, critiques with and without the right solution: on one seed pass@1 fell to .08, SFT kept .29",
    finding="other problems are right in 36% at the start, in 16% after critiques and in 29% after SFT on the one solution: "
    "neither teaches them, and a small policy that learns to criticise unlearns to solve",
)  # fmt: skip
