"""CompassVerifier: a small model judges replies against gold answers as right, wrong or invalid, with augmented training cases.

    verifier(question, gold, reply) -> A right | B wrong | C no answer: cut off, repeating itself, a refusal
    loss = -mean over tokens of log p(judgement);    a share of the cases is replaced by others made of them:
      equivalent formulas: the reply's answer in another form, judged as before       12 -> 12.0, 24/2;   3, 5 -> 5, 3
      a catalogue of errors: a right answer made wrong by little (B), or a reply made invalid (C)

Rules compare forms, and take every unusual one for wrong; a model learns to compare meanings, but only where it has seen right
answers in strange forms, and wrong ones that look right. The judgement serves RL as the reward `judged_right`: 1 for A.

Liu et al. 2025, arXiv:2508.03686; letters, their reading and file format follow the released code (open-compass/CompassVerifier,
c5d6700, src/prompts.py and the reading in README.md); its training is not released. Here programs write the new cases, where there
a language model does, from a catalogue of human analysis: the forms and errors are ours (inferred), and the held-out cases are
written by other rules than they. The metric is F1 of each judgement, and their mean, with a rule's beside it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Sampling, Trajectory, Turn, ask, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.text.judgments import JUDGMENTS, read_judgment
from rewardlab.verifiers.match import final_answer
from rewardlab.worlds.judgments import Case, but, case_of, place, stated, to_judge

# ---- Three-way judgements against the gold ones: VerifierBench's accuracy and F1 -------------------------------------


def f1_by_class(gold: Sequence[str], said: Sequence[str | None]) -> dict[str, float]:
    """F1 of each judgement: the harmonic mean of precision and recall; 0 for one that is never given where it should be.

    A missing judgement counts as none of them.
    """
    found = {}
    for judgment in JUDGMENTS:
        hits = sum(g == s == judgment for g, s in zip(gold, said, strict=True))
        total = sum(g == judgment for g in gold) + sum(s == judgment for s in said)
        found[judgment] = 2 * hits / total if total else 0.0
    return found


@measure
def judgment_f1(
    problems: Sequence[Problem], run: Run, *, rule: Reward | None = None, max_new: PositiveInt = 32
) -> dict[str, float]:
    """The policy as a verifier, by the likeliest judgement of each case: accuracy; macro_f1, the mean of f1_A, f1_B and f1_C;
    binary_f1, of A where B and C are one; and unread, the share of its texts without a judgement.

    rule: a verifier to compare with, which knows right and wrong alone; its numbers are rule.accuracy and so on. Problems have the
    columns of VerifierBench: question, gold_answer, llm_response, gold_judgment. Liu et al. 2025, arXiv:2508.03686
    """
    lacking = next((p for p in problems if p.meta.get("gold_judgment") not in JUDGMENTS), None)
    if lacking is not None:
        raise RewardlabError(f"the case {lacking.question[:60]!r} has no column gold_judgment with A, B or C")
    gold = [p.meta["gold_judgment"] for p in problems]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    texts = [t.reply for t in run.policy.extend(prompts, Sampling(max_new, temperature=0.0), run.rng("eval"))]
    said = [read_judgment(text) for text in texts]
    low, high = mean_interval([float(g == s) for g, s in zip(gold, said, strict=True)])
    found = {"ci95_low": low, "ci95_high": high, "n": float(len(gold)), "unread": said.count(None) / len(said)}
    found = {**_numbers(gold, said), **found}
    if rule is not None:
        found |= {f"rule.{name}": value for name, value in _numbers(gold, _by_rule(problems, rule, run)).items()}
    return found


def _numbers(gold: Sequence[str], said: Sequence[str | None]) -> dict[str, float]:
    by_class = f1_by_class(gold, said)
    accuracy = float(np.mean([g == s for g, s in zip(gold, said, strict=True)]))
    names = {f"f1_{judgment}": value for judgment, value in by_class.items()}
    return {"macro_f1": float(np.mean([*by_class.values()])), "accuracy": accuracy, "binary_f1": by_class["A"], **names}


def _by_rule(problems: Sequence[Problem], rule: Reward, run: Run) -> list[str | None]:
    ids = np.zeros(1, np.int64)
    replies = [
        Trajectory(ask(p.meta["question"], p.meta["gold_answer"]), (Turn("policy", ids, text=p.meta["llm_response"]),), "end")
        for p in problems
    ]
    scores = rule([[t] for t in replies], run)
    return [None if row[0].value is None else "A" if row[0].value >= 1.0 else "B" for row in scores]


# ----------------------------------------------------------------------------------------------------------------------
#
# New cases from old ones whose judgement is known: equivalent formulas, and a catalogue of errors that deceive verifiers.
#
#     EQUIVALENT     the stated answer in another form; the judgement stays       12 -> 12.0, 24/2, $12$;   3, 5 -> 5, 3
#     ERRORS         a right answer made wrong, as little as possible             12 -> 13, 21, -12;        3, 5 -> 3
#                    in LaTeX too       \frac{1}{2} -> 1/2, \dfrac{1}{2}; wrong: \frac{2}{1}, \frac{1}{3}
#     INVALID        a reply that gives no answer                                 cut off, repeated, refused
#
# After the complex formula augmentation and the error-driven adversarial augmentation of CompassVerifier (Liu et al. 2025,
# arXiv:2508.03686). There a language model writes them, and the catalogue comes from people who read a verifier's mistakes.

Form = Callable[[str, random.Random], str | None]
"""(answer, rng) -> the answer in this form; None for one that has no such form."""

_NUMBER = re.compile(r"-?[0-9]{1,9}")
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{([0-9]{1,6})\}\{([0-9]{1,6})\}")
REFUSALS = ("I cannot answer this.", "There is not enough to go on.", "I am not able to help with that.", "No answer can be given.")


def _number(answer: str) -> int | None:
    return int(answer) if _NUMBER.fullmatch(answer) else None


def _parts(answer: str) -> list[str]:
    parts = answer.split(", ")
    return parts if len(parts) > 1 else []


def _of_number(write: Callable[[int, random.Random], object]) -> Form:
    return lambda answer, rng: None if (n := _number(answer)) is None else str(write(n, rng))


def _of_parts(write: Callable[[list[str], random.Random], str]) -> Form:
    return lambda answer, rng: write(parts, rng) if (parts := _parts(answer)) else None


def _latex_fraction(write: Callable[[str, int, int, random.Random], str | None]) -> Form:
    """Of a whole answer that is a fraction: (sign, numerator, denominator, rng) -> text."""
    return lambda answer, rng: write(m[1], int(m[2]), int(m[3]), rng) if (m := _FRACTION.fullmatch(answer)) else None


def _other_number(answer: str, rng: random.Random) -> str | None:
    """LaTeX with another number in the place of one of its own."""
    found = list(_NUMBER.finditer(answer)) if "\\" in answer and "{0}" not in answer else []
    if not found:
        return None
    at = rng.choice(found)
    return f"{answer[: at.start()]}{int(at[0]) + rng.randint(1, 3)}{answer[at.end() :]}"


def _fraction(n: int, rng: random.Random) -> str:
    k = rng.randint(2, 4)
    return f"{n * k}/{k}"


def _another(n: int, rng: random.Random) -> int:
    # of 11 and of 5 the digits cannot be swapped
    swapped = int(str(abs(n))[::-1])
    return rng.choice([x for x in (n - 1, n + 1, n + 10, -n, swapped) if x != n])


def _wrong_part(parts: list[str], rng: random.Random) -> str | None:
    last = _number(parts[-1]) if parts else None
    return None if last is None else ", ".join([*parts[:-1], str(_another(last, rng))])


EQUIVALENT: Mapping[str, Form] = {
    "decimal": _of_number(lambda n, rng: f"{n}.0"),
    "fraction": _of_number(_fraction),
    "dollars": lambda answer, rng: f"${answer}$",
    "reordered": _of_parts(lambda parts, rng: ", ".join(parts[::-1])),
    "and": _of_parts(lambda parts, rng: " and ".join(parts)),
    "plain fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}{a}/{b}"),
    "display fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}\\dfrac{{{a}}}{{{b}}}"),
    "widened fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}\\frac{{{a * (k := rng.randint(2, 4))}}}{{{b * k}}}"),
}
ERRORS: Mapping[str, Form] = {
    "near miss": _of_number(_another),
    # an unusual form alone must not pass for right
    "near miss in another form": _of_number(lambda n, rng: rng.choice((f"{_another(n, rng)}.0", _fraction(_another(n, rng), rng)))),
    "part missing": _of_parts(lambda parts, rng: ", ".join(parts[:-1])),
    "part too many": _of_parts(lambda parts, rng: ", ".join([*parts, str(rng.randint(1, 99))])),
    "wrong part": lambda answer, rng: _wrong_part(_parts(answer), rng),
    "turned fraction": _latex_fraction(lambda sign, a, b, rng: f"{sign}\\frac{{{b}}}{{{a}}}" if a not in (0, b) else None),
    "other number in LaTeX": _other_number,
}


def _cut_off(case: Case, rng: random.Random) -> Case:
    """Without its answer, and most of the line before it."""
    before = case.response.rpartition("\n")[0]
    where = place(case.response)
    if not before and where:
        # the answer stands in the first line: what comes before it, without the box or the words that begin it
        before = re.split(r"\\boxed|[Aa]nswer", case.response[: where[0]])[0].rstrip(" $*") or "So"
        return replace(case, response=before, judgment="C")
    before = before or case.response
    return replace(case, response=before[: max(1, len(before) - rng.randint(1, 3))], judgment="C")


def _repeated(case: Case, rng: random.Random) -> Case:
    line = case.response.rpartition("\n")[2]
    return replace(case, response="\n".join([case.response, *[line] * rng.randint(3, 5)]), judgment="C")


def _refused(case: Case, rng: random.Random) -> Case:
    return replace(case, response=rng.choice(REFUSALS), judgment="C")


INVALID: Mapping[str, Callable[[Case, random.Random], Case]] = {"cut off": _cut_off, "repeated": _repeated, "refused": _refused}


def augmented(case: Case, rng: random.Random) -> Case:
    """A new case made from one whose judgement is known, of each kind a third of the time; the same case where none can be made."""
    kind = rng.choice((_equivalent, _error, _invalid))
    return kind(case, rng) or case


def _equivalent(case: Case, rng: random.Random) -> Case | None:
    return _written(case, EQUIVALENT, rng, case.judgment) if case.judgment in ("A", "B") else None


def _error(case: Case, rng: random.Random) -> Case | None:
    return _written(case, ERRORS, rng, "B") if case.judgment == "A" else None


def _invalid(case: Case, rng: random.Random) -> Case | None:
    return INVALID[rng.choice(sorted(INVALID))](case, rng) if case.judgment in ("A", "B") else None


def _written(case: Case, forms: Mapping[str, Form], rng: random.Random, judgment: str | None) -> Case | None:
    said = stated(case.response) or ""
    # each form that applies is as likely; what it writes is sampled once
    fitting = [text for name in sorted(forms) if (text := forms[name](said, rng)) is not None] if said else []
    return but(case, rng.choice(fitting), judgment) if fitting else None


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@rollout(wraps="inner")
def with_augmented(problems: list[Problem], run: Run, *, inner: Rollout, share: Share = 0.5) -> list[Group]:
    """The groups of `inner` for the problems, with a `share` of them replaced by augmented cases."""
    rng = random.Random(int(run.rng("augment").initial_seed()))
    return inner(varied(problems, rng, share), run)


def varied(problems: Sequence[Problem], rng: random.Random, share: float) -> list[Problem]:
    """The problems, a share of them as another case. The same random numbers are taken for each, whatever the share."""
    chances = [(rng.random(), random.Random(rng.getrandbits(64))) for _ in problems]
    return [to_judge(augmented(case_of(p), r)) if x < share else p for p, (x, r) in zip(problems, chances, strict=True)]


def compassverifier(base: Recipe | None = None, *, augment: float = 0.5) -> Recipe:
    """augment: share of the training cases that are replaced by made-up ones; 0: none."""
    base = base or sft()
    return base.but(
        rollout=with_augmented(inner=base.required("rollout"), share=augment),
        measure=judgment_f1(rule=final_answer()),
    )


fidelity = "core"
left_out = (
    "a language model that writes the new cases: programs do, from a catalogue of their own; judging with reasoning in words "
    "first; augmentation of prompts, and the released prompt, in whose place question, gold answer and reply stand one below the "
    "other"
)
data = Data(
    refuses="its rows are cases to be judged, with the columns question, gold_answer, llm_response and gold_judgment (A, B or C), "
    "as of VerifierBench: give them as --task judgments:path=FILE, which writes the prompts",
)

claim = Claim(
    says="trained on equivalent formulas and made-up errors too, a verifier judges forms that no training case has better",
    versus="compassverifier", task="judgments", measure="macro_f1", direction="higher", margin=0.13,
    versus_settings={"augment": 0.0}, steps=100,
    fault=Within("macro_f1", high=0.75, says="macro F1 of the verifier that saw plain answers alone"),
    judge=Within("f1_A", low=0.45, says="F1 of right answers; guessing among three gets a third"), learns=None,
    finding="macro F1 is .46 with both, .33 without (.40 before), and .49 for a rule that compares answers. What rises is F1 of "
    "invalid replies (.58 and .02); that of right ones is .33 and .49: the judge has not learnt these, so that nothing is decided",
    version=2,
    replaces="its test cases were made by the augmenter that made the training cases; a rule that compares answers had F1 .81 "
    "there, which was not said: it is measured beside the verifier (rule.macro_f1)",
)  # fmt: skip
baseline = "sft"
