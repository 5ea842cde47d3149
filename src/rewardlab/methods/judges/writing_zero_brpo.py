r"""Writing-Zero: a judge compares each reply with one of its own group, chosen at random; +1 or -1 is the advantage (BRPO).

    ref ~ uniform over the group o_1 ... o_n;      A_i = +1 if the judge scores o_i above o_ref, else -1;     A_ref = 0
    kept: groups with |sum_i A_i| / n <= tau;      loss = -mean min(ratio A, clip(ratio, 1 - eps, 1 + eps) A)

Writing has no right answers, and a score of a text alone can be pushed up without end, by length and explanation. Whether one text
is better than another is a verdict, as that on an answer of mathematics, and the text to compare with comes from the policy itself:
it grows better as the policy does, so that it never becomes too easy to beat, as a fixed reference does. Dividing by the standard
deviation would undo that +1 and -1 mean the same in every group. A reference that beats all, or is beaten by all, tells the others
apart no more, and its group is left out.

The judge writes principles for this text, criticises both by them and scores both, from 0 to 10 (self-principled critique).

Jia et al. 2025, arXiv:2506.00103, by our summary and others; no code was released. tau = .6 is the paper's, for groups of 16. That
the reference's advantage is 0 is that of a public trainer that follows it (for code, with a pairwise verifier); there a reply earns
+1 where it wins every judgement, in both orders. (inferred): that a group which is left out is not replaced; two judgements of a
comparison, one in each order, whose mean counts, and that a tie is -1; a judgement that cannot be read does not count, and a reply
of which none can has no verdict; the wording of the judge's prompt. In place of a judge, `by`
may be any reward: the reply with more of it is preferred. `reference` names a column with a fixed text to compare with, the rival
of the paper's idea.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Problem,
    Recipe,
    Run,
    Sampling,
    Score,
    Scores,
    Trajectory,
    credit,
    measure,
    seed_of,
)
from rewardlab.credit.group import group_sums
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.rewards import mean_reward
from rewardlab.judges.forms import Form, Kind, Reading
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.imperfect import votes
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.answers import after_thinking
from rewardlab.worlds.notes import note_quality, praise_words

JUDGE = "judge"
NO_ROOM = "a question, and a judgement of it, exceed its context: lower --max-judgement"
HELP = "--judge names another (a run of trained_judge, openai:URL#NAME), --form what it is asked, --max-judgement its tokens"
PRINCIPLES = (
    "Two texts were written to the same request. First write the principles by which texts of this kind, to this request, should "
    "be judged, each with a weight. Then criticise both texts by these principles, quoting them. Length and explanation are no "
    "merits of their own, nor is the order in which the texts stand. Then give each a score from 0 (worst) to 10 (best).\n\n"
    "[Request]\n{prompt}\n\n{replies}\n\nEnd with the scores in the order of the texts, in the form [[7, 3]]."
)


# ---- comparisons with the temporary reference ------------------------------------------------------------------------------


@reward(over="groups", relative=True)
def beats_reference(
    groups: list[Group], run: Run, *, by: Reward | None = None, model: str = JUDGE, form: str = PRINCIPLES, kind: Kind = "scores",
    judgements: PositiveInt = 2, reference: str = "", max_new: PositiveInt = 512, temperature: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """+1 for a reply that is preferred to a reply of its group, chosen at random, else -1; 0 for that reply itself.

    by: a reward that prefers; None: the judge `model`, a model of the run, which is asked `judgements` times, in alternate orders,
    and prefers by the mean of its scores.  form, kind: how, as in `judge`.  reference: a column whose text all replies are compared
    with instead. A reply with the reference's text is not preferred to it. No verdict where no judgement can be read.  Logged:
    preferred, the share of compared replies that are.
    """
    at = [None if reference else _chosen(group, run) for group in groups]
    texts = [_text(group[0].problem, reference) if i is None else group[i].reply for group, i in zip(groups, at, strict=True)]
    preferring = Preferring(by, model, form_of(form, kind), judgements, Sampling(max_new, temperature))
    rows = []
    found, unread = preferring.gaps(groups, texts, run)
    for group, gaps, i, text in zip(groups, found, at, texts, strict=True):
        judged = [_verdict(t.reply == text, gap, unread) for t, gap in zip(group, gaps, strict=True)]
        rows.append([Score(0.0, why="the reference") if k == i else s for k, s in enumerate(judged)])
    known = [s.value > 0 for row, i in zip(rows, at, strict=True) for k, s in enumerate(row) if k != i and s.value is not None]
    if known:
        run.log("preferred", sum(known) / len(known))
    return rows


def _chosen(group: Group, run: Run) -> int:
    """The place of a group's temporary reference: by a hash, so that it is the same whenever these replies are scored."""
    key = seed_of("brpo", run.seed, run.moment, group[0].problem.key, *(t.reply for t in group))
    return random.Random(key).randrange(len(group))


def _text(problem: Problem, column: str) -> str:
    problem.required(column, by="writing_zero_brpo")
    return str(problem.meta[column])


def _verdict(same: bool, gap: float | None, unread: str) -> Score:
    if same:
        return Score(-1.0, why="the reference's text")
    return Score(None, why=unread) if gap is None else Score(1.0 if gap > 0 else -1.0, why=f"by {gap:+.3g}")


class Preferring(NamedTuple):
    """Who compares: a reward `by`, or a model of the run as a judge, asked `judgements` times about two texts."""

    by: Reward | None
    model: str
    form: Form
    judgements: int
    sampling: Sampling

    def gaps(self, groups: list[Group], texts: Sequence[str], run: Run) -> tuple[list[list[float | None]], str]:
        """By how much each reply is preferred to the text for its group, None where that is not known; and why not, of the first.

        Logged of a judge: judge_no_verdict, the share of its judgements that cannot be read.
        """
        return self._by_reward(groups, texts, run) if self.by is not None else self._by_judge(groups, texts, run)

    def _by_reward(self, groups: list[Group], texts: Sequence[str], run: Run) -> tuple[list[list[float | None]], str]:
        assert self.by is not None
        begun = run.policy.read([Trajectory(g[0].problem) for g in groups], [g[0].problem.prompt for g in groups])
        beside = [[*g, t] for g, t in zip(groups, run.policy.write(begun, list(texts)), strict=True)]
        scored = self.by(beside, run)
        why = next((s.why for row in scored for s in row if s.total is None), "")
        scores = [[s.total for s in row] for row in scored]
        return [[None if x is None or row[-1] is None else x - row[-1] for x in row[:-1]] for row in scores], why

    def _by_judge(self, groups: list[Group], texts: Sequence[str], run: Run) -> tuple[list[list[float | None]], str]:
        cells = [
            (g, i, k % 2 == 0)
            for g, (group, text) in enumerate(zip(groups, texts, strict=True))
            for i, t in enumerate(group) if t.reply != text for k in range(self.judgements)
        ]  # fmt: skip
        pairs = [(after_thinking(groups[g][i].reply), after_thinking(texts[g])) for g, i, _ in cells]
        asked = [
            self.form.asked(groups[g][i].problem, pair if first else pair[::-1])
            for (g, i, first), pair in zip(cells, pairs, strict=True)
        ]  # fmt: skip
        said, _ = answers(run, self.model, asked, 1, self.sampling)
        found: list[list[list[float]]] = [[[] for _ in group] for group in groups]
        read = [self.form.read(row[0], 2) if row else Reading(None, NO_ROOM) for row in said]
        for (g, i, first), (values, _) in zip(cells, read, strict=True):
            if values is not None:
                found[g][i].append(values[0] - values[1] if first else values[1] - values[0])
        unread = [why for values, why in read if values is None]
        if read:
            run.log("judge_no_verdict", len(unread) / len(read))
        why = f"the judge: {unread[0]}; {HELP}" if unread else ""
        return [[sum(gaps) / len(gaps) if gaps else None for gaps in row] for row in found], why


@measure(needs=("ref",))
def preferred_to_start(
    problems: Sequence[Problem], run: Run, *, by: Reward | None = None, model: str = JUDGE, form: str = PRINCIPLES,
    kind: Kind = "scores", judgements: PositiveInt = 2, max_new: PositiveInt = 512,
) -> dict[str, float]:  # fmt: skip
    """preferred: the share of held-out replies that are preferred to one of the policy as it began, equal texts half; comparisons
    that cannot be read are left out, and where none can be, a half says that nothing is known.  judge_no_verdict: the share of
    those.  reply_tokens: the replies' mean length.  All as in `beats_reference`."""
    prompts = [p.prompt for p in problems]
    mine, start = (
        writer.extend(writer.read([Trajectory(p) for p in problems], prompts), Sampling(run.max_new), run.rng("eval"))
        for writer in (run.policy, run.reference)
    )
    groups = [[t] for t in mine]
    gaps, _ = Preferring(by, model, form_of(form, kind), judgements, Sampling(max_new)).gaps(groups, [t.reply for t in start], run)
    compared = [(a.reply == b.reply, gap) for (gap,), a, b in zip(gaps, mine, start, strict=True)]
    won = [0.5 if same else float((gap or 0.0) > 0) for same, gap in compared if same or gap is not None]
    low, high = mean_interval(won) if won else (0.0, 1.0)
    return {
        "preferred": sum(won) / len(won) if won else 0.5, "ci95_low": low, "ci95_high": high, "n": float(len(won)),
        "judge_no_verdict": 1.0 - len(won) / len(compared),
        "reply_tokens": sum(float(t.mask.sum()) for t in mine) / len(mine),
    }  # fmt: skip


@credit(compares_rows=True)
def without_lopsided(a: Tensor, batch: Batch, run: Run, *, most: Share = 0.6) -> Tensor:
    """No credit for groups with |sum of rewards| / n above `most`: their reference is too good, or too bad, to tell replies apart.

    n counts the rows with a verdict, the reference among them. Logged: lopsided, the share of such groups.
    """
    n = group_sums(batch.rewarded.float(), batch).clamp(min=1)
    far = group_sums(torch.where(batch.rewarded, a, 0.0), batch).abs() / n > most + 1e-6  # (G,)
    run.log("lopsided", float(far.float().mean()))
    return torch.where(far[batch.group, None], 0.0, a)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def writing_zero_brpo(
    base: Recipe | None = None, *, judge: str = "copy:policy", by: Reward | None = None, form: str = PRINCIPLES,
    kind: Kind = "scores", judgements: int = 2, reference: str = "", most: float = 0.6, n: int = 8, max_judgement: int = 512,
) -> Recipe:  # fmt: skip
    """judge: who compares, openai:URL#NAME or a model (`Learner.init`), such as a run of a judge's method.  by: a reward in its
    place.  form, kind: how it is asked.  judgements: of a comparison.  reference: a column with a fixed text in place of a reply.
    most: tau.  n: replies to a prompt.  max_judgement: tokens of a judgement."""
    base = base or grpo(n=n)
    asked: dict[str, Any] = {"by": by, "form": form, "kind": kind, "judgements": judgements, "max_new": max_judgement}
    return base.but(
        reward=beats_reference(reference=reference, **asked),
        credit=without_lopsided(most=most) >> to_go(),
        measure=preferred_to_start(**asked),
        also=base.also if by else (*base.also, Learner(JUDGE, judge, Recipe(), every=0)),
    )


fidelity = "reading"
left_out = (
    "how the judge is trained, on pairs of writing, first by imitation and then by rewards for right preferences (`trained_judge` "
    "with this form makes one, and judge=RUN takes it), and new groups in the place of those that are left out"
)
data = Data(
    reference=Column("a fixed text to compare replies with (reference=reference)", optional=True, setting="reference"),
    rows=[
        {"prompt": "Write the first two lines of a poem about rain."},
        {"prompt": "Write a toast for a friend who is leaving for Lisbon."},
        {"prompt": "Describe a harbour at dawn in two sentences."},
    ],
)  # fmt: skip

check = Check(
    says="a comparison that is often wrong teaches better notes than an exact score that likes praise too much",
    versus="rlhf", task="notes", measure="reward", direction="higher", margin=0.05,
    settings={"by": votes(inner=note_quality(), voters=1, noise=0.2)},
    # a word of praise adds .3 to the score, so that one beyond the second still gains .15, where the truth takes .15
    versus_settings={"score": note_quality() + 1.2 * praise_words(), "beta": 0.0}, by=mean_reward(), problems=300, steps=40,
    # sanity: the rival's score is wrong by design, and the comparison's mean is not
    learns=None, sanity=True,
    tried="a score with .6 for praise, which takes as much as the truth does beyond two words: there was no fault to mend",
    finding="A small writer of notes, 40 updates: the true quality of its notes goes from .55 to .84 where each is compared with "
    "another of its group by a judge that is wrong one time in five, and to .65 by an exact score that likes praise too much",
)  # fmt: skip
baseline = "grpo"
