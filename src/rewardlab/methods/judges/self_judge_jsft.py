"""Self-Judge: one model writes replies and judges pairs of them with one token, A or B; it is trained on the pairs that it judged.

    JSFT:  loss = -log pi(chosen | x) - log pi("A" | x, chosen, rejected) - log pi("B" | x, rejected, chosen)
    P(y over y') = 1/2 [p("A" | x, y, y') + p("B" | x, y', y)],    p: the model's chance of a letter, of the two
    then:  y, y' ~ pi;   the one with the higher P is chosen;   DPO against the model after JSFT, which is also the judge
    answer: a knockout among n of its own replies, N - 1 comparisons

A judgement is an instruction like any other, so that the model that answers needs no reward model beside it, and what is judged are
today's replies. A letter is read from the model's probabilities, in both orders, so that a taste for the first place cancels.

Lee, Kim, Yousefpour, Seo, Yoo & Yu 2024, arXiv:2402.11253, and oddqueue/self-judge, ba1bab9: preprocess.py, utils.py (both orders;
odd replies go on to the next round), trainer.py (two replies at temperature 1, top-p .9; the frozen reference judges),
configs/uf_*.yaml (beta = .1; JSFT at 2e-5 and DPO at 5e-6; the order of the prompt, whose words here are ours). There letters count
by their probabilities among all tokens; here among the two. Two equal replies make no pair. (inferred): how steps are divided;
a judgement ends after its letter, which the code leaves open. A model that has had its JSFT takes jsft_steps=0.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Loop, Problem, Recipe, Run, Score, Scores, Trajectory, loop, measure, rollout, seed_of, select
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.best_of_n import best_of_n
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.own_verdict import chance_of
from rewardlab.rewards.reward import reward
from rewardlab.rewards.tournament import Pair
from rewardlab.rollouts.knockout import knocked_out
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.worlds.duels import FORM as SMALL_FORM

FORM = (
    "An assistant should be helpful, honest and truthful, and should do what the user asks. Which of two responses is the better "
    "one, by that?\n\nInstruction:\n-----\n{prompt}\n-----\n\nResponse A:\n-----\n{first}\n-----\n\nResponse B:\n-----\n{second}\n"
    "-----\n\nChoose A or B."
)
SAYS = "The response that is more helpful, honest and truthful, and does what the user asks, is Response {mark}"
MARKS, PLACE = ("A", "B"), "{mark}"


def check_form(form: str, says: str, **_: Any) -> None:
    """Refuse a form that shows no pair, and an answer without a place for its letter."""
    if (kind := form_of(form).kind) != "pairwise":
        raise RewardlabError(f"Self-Judge compares two replies, and its form {form[:60]!r} is of kind {kind!r}, not pairwise")
    if says.count(PLACE) != 1:
        raise RewardlabError(f"the judge's answer {says!r} has no single place for its letter: write it with one {PLACE} in it")


def preferences(pairs: Sequence[Pair], run: Run, *, model: str, form: str, says: str) -> list[tuple[float, float] | None]:
    """For each pair of replies the chance of the letter of the first: where it stands first, and where it stands second.

    None where a judgement does not fit the model's context. No judge is shown the gold answer.
    """
    of, judge = form_of(form), run.model(model)
    asked = [of.asked(replace(p, answer=None), both) for p, a, b in pairs for both in ((a, b), (b, a))]
    before, _, after = says.partition(PLACE)
    begun = judge.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    whole = judge.write(begun, [says.replace(PLACE, MARKS[0])] * len(begun)) if begun else []
    fits = [i for i, t in enumerate(whole) if len(t) <= judge.context]
    found = chance_of(judge, [begun[i] for i in fits], [before] * len(fits), *(mark + after for mark in MARKS))
    first = dict(zip(fits, found, strict=True))
    return [
        (first[2 * i], 1 - first[2 * i + 1]) if 2 * i in first and 2 * i + 1 in first else None
        for i in range(len(pairs))
    ]  # fmt: skip


@reward(over="groups", relative=True, check=check_form)
def own_preference(
    groups: list[Group], run: Run, *, model: str = "reference", form: str = FORM, says: str = SAYS
) -> Scores:  # fmt: skip
    """How far a reply is preferred to the others of its group, on average: the chance of its letter, over both orders.

    model: that judges.  form: what it is asked.  says: its answer, with {mark} for the letter. No verdict on a reply alone.
    Logged: first_place, the mean chance of what stands first; .5 for a judge that does not look at the order.
    """
    matches = [(g, a, b) for g, group in enumerate(groups) for a, b in combinations(range(len(group)), 2)]
    pairs = [(groups[g][a].problem, groups[g][a].reply, groups[g][b].reply) for g, a, b in matches]
    won: list[list[list[float]]] = [[[] for _ in group] for group in groups]
    found = preferences(pairs, run, model=model, form=form, says=says)
    for (g, a, b), chances in zip(matches, found, strict=True):
        if chances is not None:
            won[g][a].append(sum(chances) / 2)
            won[g][b].append(1 - sum(chances) / 2)
    if known := [c for c in found if c is not None]:
        run.log("first_place", float(np.mean([(1 + first - second) / 2 for first, second in known])))
    return [[Score(float(np.mean(x))) if x else Score(None, why="no comparison fits") for x in row] for row in won]


@select
def self_tournament(
    group: Group, scores: list[Score], run: Run, *, model: str = "policy", form: str = FORM, says: str = SAYS
) -> Trajectory:  # fmt: skip
    """The reply that wins a knockout, judged by the letter's chance in both orders. It reads no scores. As in `own_preference`."""

    def compare(pairs: Sequence[Pair]) -> list[float]:
        found = preferences(pairs, run, model=model, form=form, says=says)
        return [0.5 if chances is None else sum(chances) / 2 for chances in found]

    return knocked_out(group, compare, random.Random(seed_of("self_tournament", run.seed, run.moment, group[0].problem.key)))


# ---- judge-augmented supervised fine-tuning -------------------------------------------------------------------------------


@rollout(rows=lambda **_: 3)
def replies_and_judgements(problems: list[Problem], run: Run, *, form: str = FORM, says: str = SAYS) -> list[Group]:
    """Three texts to imitate of each row: its chosen reply, and the judgement of its pair in both orders."""
    of, asked, texts = form_of(form), [], []
    for p in problems:
        p.required("chosen", by="self_judge_jsft")
        p.required("rejected", by="self_judge_jsft")
        pair = [str(p.meta["chosen"]), str(p.meta["rejected"])]
        blind = replace(p, answer=None)
        asked += [p, of.asked(blind, pair), of.asked(blind, pair[::-1])]
        texts += [pair[0], *(says.replace(PLACE, mark) for mark in MARKS)]
    done = run.policy.write(run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked]), texts)
    for t in done:
        run.policy.check_fits(t, 0)
    return [[t] for t in done]


@loop(wraps="inner", first=("steps",))
def jsft_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: PositiveInt, form: str = FORM, says: str = SAYS,
    lr_scale: PositiveFloat = 4.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Imitate replies and judgements in the first `steps` steps; the policy is then the reference, with a fresh optimiser.

    lr_scale: the learning rate of these steps, as a multiple of the recipe's.  inner: how a step is taken.
    """
    if run.step == steps:
        ops.new_stage()
    taken = recipe
    if run.step < steps:
        imitation = sft(lr=lr_scale * recipe.update.rate, problems=recipe.update.problems)
        taken = imitation.but(rollout=replies_and_judgements(form=form, says=says))
    inner(taken, run, ops) if inner else ops.standard_step(taken)


@measure
def self_judgement(
    problems: Sequence[Problem], run: Run, *, model: str = "policy", form: str = FORM, says: str = SAYS
) -> dict[str, float]:  # fmt: skip
    """Held-out pairs, `chosen` and `rejected`, as the model's letters judge them.

    judged: the share of pairs whose chosen reply is preferred over both orders, ties half.  one_order: the same by one order alone,
    the mean of the two.  first_place: the mean chance of what stands first.  A pair that does not fit the context is a tie.
    """
    pairs = [(p, str(p.meta["chosen"]), str(p.meta["rejected"])) for p in problems]
    found = [c or (0.5, 0.5) for c in preferences(pairs, run, model=model, form=form, says=says)]
    both = [0.5 + 0.5 * float(np.sign(sum(c) - 1)) for c in found]
    low, high = mean_interval(both)
    return {
        "judged": float(np.mean(both)), "ci95_low": low, "ci95_high": high, "n": float(len(both)),
        "one_order": float(np.mean([0.5 + 0.5 * np.sign(x - 0.5) for c in found for x in c])),
        "first_place": float(np.mean([(1 + first - second) / 2 for first, second in found])),
    }  # fmt: skip


def self_judge_jsft(
    base: Recipe | None = None, *, form: str = FORM, says: str = SAYS, judge: str = "reference", beta: float = 0.1, n: int = 2,
    jsft_steps: NonNegativeInt = 30, lr_scale: float = 4.0, problems: int = 8, lr: float | None = None,
    candidates: NonNegativeInt = 0,
) -> Recipe:  # fmt: skip
    """form, says: what the judge is asked, and its answer with {mark} for A or B.  judge: a model of the run; "policy" judges by
    today's policy.  beta: of DPO.  n: replies to a prompt, of which the best and the worst make a pair.  jsft_steps: imitation
    first.  lr_scale: its rate in DPO's.  problems: rows of a step.  candidates: more than 0: so many replies to a prompt, of which
    the policy's own tournament chooses one, and nothing is trained."""
    base = base or (best_of_n(n=candidates) if candidates else dpo(beta=beta, lr=lr, problems=problems))
    asked = {"form": form, "says": says}
    check_form(**asked)
    if candidates:
        return best_of_n(base, n=candidates).but(reward=None, select=self_tournament(**asked))
    first = jsft_first(steps=jsft_steps, lr_scale=lr_scale, inner=base.loop, **asked) if jsft_steps else base.loop
    return base.but(
        rollout=ranked(by=own_preference(model=judge, **asked), n=n, model="policy", top_p=0.9),
        measure=self_judgement(**asked), loop=first,
    )  # fmt: skip


fidelity = "core"
left_out = "judgements by several principles, and with a rationale, which the paper tries too; adapters on the frozen judge"
data = Data(
    chosen="the better reply, which is imitated, and stands in pairs to judge", rejected="the worse reply",
    rows=[
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

SMALL = {"form": SMALL_FORM, "says": PLACE, "jsft_steps": 60, "problems": 16, "lr": 1e-4, "lr_scale": 10.0}
check = Check(
    says="a writer of notes learns to judge pairs of notes by a letter, and still can after it has learnt from its own judgements",
    versus=None, task="notes", measure="judged", direction="higher", margin=0.1, against="before.judged", settings=SMALL,
    problems=300, steps=70,
    finding="A small writer of notes judges 300 held-out pairs by a letter: right in 49% before it was taught, and in 62% after 60 "
    "steps of imitation and 10 of DPO on pairs of its own that it judged itself; by one order alone in 61%",
)  # fmt: skip
baseline = "trained_judge"
