"""CompassVerifier: a small model judges replies against gold answers as right, wrong or no answer, trained on made-up cases too.

    verifier(question, gold, reply) -> A right | B wrong | C no answer: cut off, repeating itself, a refusal
    loss = -mean over tokens of log p(judgement);    a share of the cases is replaced by others made of them:
      equivalent formulas: the reply's answer in another form, judged as before       12 -> 12.0, 24/2;   3, 5 -> 5, 3
      a catalogue of errors: a right answer made wrong by little (B), or a reply made invalid (C)

Rules compare forms, and take every unusual one for wrong; a model learns to compare meanings, but only where it has seen right
answers in strange forms, and wrong ones that look right. The judgement serves RL as the reward `judged_right`: 1 for A.

Liu et al. 2025, arXiv:2508.03686; letters, their reading and file format follow the released code (open-compass/CompassVerifier,
c5d6700). Here programs write the new cases, where there a language model does, from a catalogue of human analysis: the forms and
errors are ours (inferred), and the held-out cases are written by other rules than they. The metric is F1 of each judgement, and
their mean, with a rule's beside it. Left out: judging with reasoning in words first, and
augmentation of prompts.

Data: rows as of VerifierBench: question, gold_answer, llm_response, gold_judgment (A, B, C): `--task judgments:path=FILE`.
"""

import random
from collections.abc import Sequence

from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.core.domain import Share
from rewardlab.evals.judgments import judgment_f1
from rewardlab.methods.baselines.sft import sft
from rewardlab.proof.claim import Claim, Within
from rewardlab.tasks.judgments.augment import augmented
from rewardlab.tasks.judgments.language import case_of, to_judge
from rewardlab.verifiers.match import final_answer


@rollout(inner="of")
def with_augmented(problems: list[Problem], run: Run, *, of: Rollout, share: Share = 0.5) -> list[Group]:
    """What `of` makes of the problems, a `share` of which is replaced by cases made of them."""
    rng = random.Random(int(run.rng("augment").initial_seed()))
    return of(varied(problems, rng, share), run)


def varied(problems: Sequence[Problem], rng: random.Random, share: float) -> list[Problem]:
    """The problems, a share of them as another case. The same random numbers are taken for each, whatever the share."""
    chances = [(rng.random(), random.Random(rng.getrandbits(64))) for _ in problems]
    return [to_judge(augmented(case_of(p), r)) if x < share else p for p, (x, r) in zip(problems, chances, strict=True)]


def compassverifier(base: Recipe | None = None, *, augment: float = 0.5) -> Recipe:
    """augment: share of the training cases that are replaced by made-up ones; 0: none."""
    base = base or sft()
    return base.but(
        rollout=with_augmented(of=base.required("rollout"), share=augment),
        measure=judgment_f1(rule=final_answer()),
    )


claim = Claim(
    says="trained on equivalent formulas and made-up errors too, a verifier judges forms that no training case has better",
    versus="compassverifier", task="judgments", measure="macro_f1", direction="higher", margin=0.13,
    versus_settings={"augment": 0.0}, steps=100,
    fault=Within("macro_f1", high=0.75, says="macro F1 of the verifier that saw plain answers alone"),
    judge=Within("f1_A", low=0.45, says="F1 of right answers; guessing among three gets a third"), learns=None,
    version=2,
    replaces="its test cases were made by the augmenter that made the training cases; a rule that compares answers had F1 .81 "
    "there, which was not said: it is measured beside the verifier (rule.macro_f1)",
)  # fmt: skip
baseline = "sft"
