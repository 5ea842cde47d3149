"""CRPO: besides the answer, rule-based rewards for a rationale that supports the answer and covers all findings.

    R = w_acc right + w_faith agrees + w_comp covered (+ w_form tags),    then GRPO's advantage of R

agrees: the option that the rationale ends at is the one that is answered. covered: the share of the findings of the case, a
column of the data, that the rationale mentions. Both are rules, so that no one annotates rationales. With the answer alone a
rationale that contradicts it, or skips what is known, earns as much as a sound one.

Gu et al. 2025, arXiv:2512.00601. The two rules are ours (inferred): by summaries of the paper they are verifiable and need no
annotation, at most 10 + 2 is paid, and analysis and conclusion are to be told apart by tags, <dx> and <conclusion>. The released
reward (BoyangGu1/Clinical-R1-3B, 5c068fd, verl/utils/reward_score/medical_rule_based.py) comes to the same 12 and reads no
rationale: 10 for the answer, up to 1.5 for a form <think>...</think><answer>...</answer> with a summary before the boxed letter,
0.5 for the share of English characters. So it may be that the form is all that the paper pays beside the answer; `form` pays the
two tags. There n boxes lose 10 n, if they are several, and one without a letter loses 5; here such replies earn nothing.
"""

from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.evals.term_means import term_means
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import tagged
from rewardlab.rewards.rationale_coverage import rationale_coverage
from rewardlab.rewards.task import correct
from rewardlab.verifiers.choice.rationale import rationale_agrees


def clinical_r1_crpo(
    base: Recipe | None = None, *, accuracy: float = 10.0, faithful: float = 1.0, comprehensive: float = 1.0, form: float = 0.0,
    column: str = "required",
) -> Recipe:  # fmt: skip
    """accuracy, faithful, comprehensive, form: weights of the base's reward, of a rationale that leads to the answer, of one that
    covers all findings, and of the tags <think> and <answer>.  column: the findings.
    """
    base = base or grpo()
    answer: Any = base.reward or correct()
    reward = accuracy * answer + faithful * rationale_agrees() + comprehensive * rationale_coverage(column=column)
    return base.but(reward=reward + form * tagged() if form else reward)


fidelity = "reading"
left_out = (
    "the rules of the paper: those for agreement and coverage are ours, the released reward reads no rationale; the share "
    "of English characters, the penalties of several boxes, the KL of 0.001, and the mean over the tokens of all replies, which "
    "verl takes where a script names none: the GRPO that it is compared with has the mean of each reply."
)

data = Data(
    answer="the letter of the right option, or its text",
    options="the texts of the options, a list or by letter",
    required=Column("the findings that a rationale should mention, a list of phrases", setting="column"),
    verified_by="choice",
    rows=[
        {
            "prompt": "A 24-year-old woman has had fever and a stiff neck since yesterday, and light hurts her eyes. What is the "
            "most likely diagnosis?\nA. Migraine\nB. Meningitis\nC. Sinusitis\nThink first, then write: Answer: letter",
            "answer": "B",
            "options": ["Migraine", "Meningitis", "Sinusitis"],
            "required": ["fever", "stiff neck", "light"],
        },
        {
            "prompt": "A 60-year-old smoker coughs up blood and has lost 8 kg. What should be done first?\nA. Chest X-ray\n"
            "B. Antibiotics\nC. Wait\nD. Spirometry\nThink first, then write: Answer: letter",
            "answer": "A",
            "options": {"A": "Chest X-ray", "B": "Antibiotics", "C": "Wait", "D": "Spirometry"},
            "required": ["smoker", "blood", "lost 8 kg"],
        },
    ],
)

claim = Claim(
    says="more replies are right, faithful and complete at once than with GRPO on the answers alone, at the same accuracy",
    versus="grpo", task="choices", measure="all", direction="higher", margin=0.05, settings={"problems": 24, "lr": 1e-4},
    versus_settings={"problems": 24, "lr": 1e-4},
    by=term_means(reward=correct() + rationale_agrees() + rationale_coverage()), steps=120,
    guard=Within("correct", low=-0.03), fault=Within("rationale_agrees", high=0.85, says="rationales that lead to the answer"),
    moved=Within("rationale_agrees", low=0.05, says="rationales that lead to the answer, less those of GRPO"), learns="correct",
    tried="8 problems, 40 steps, three seeds: +.040, but right answers fell by .05 with GRPO; "
    "24 problems, 60 steps at 3e-4: +.175, sd .06, but right answers fell; "
    "as written here, three seeds: +.072, sd .018, but rationales led to the answer less often than with GRPO, by .028",
    finding="Findings are covered to 68%, with GRPO to 51%, and all three hold at once in 15% of the replies, not 5% (2% at "
    "the start); but rationales lead to the answer as rarely as with GRPO (72%, 74%), and right are 48% and 51%: one "
    "of the two rules did the work.",
)  # fmt: skip
