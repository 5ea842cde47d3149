"""ReasonFlux-PRM: score thoughts by the response they lead to, a judge and coherence, and the whole by its template.

    step t of the thought:   r_t = sum_k softmax(a_t, q_t, c_t)_k (a_t, q_t, c_t)_k
       a: cosine with the nearest step of the response;   q: a judge's word;   c: chance of s_{t-1} among steps of other problems
    whole:                   R = share of right ones among N replies that follow the template of the response
    model:  mean over t of (p_t - r_t)^2 + final (p_T - R)^2, p_T at the end of the reply;    RL: (1 - online) outcome + online p

Models that learnt on tidy solutions misjudge thinking, which goes back and branches, before a response that does not. The response
shows which thoughts were right; a template that helps shows that the strategy was.

Zou et al. 2025, arXiv:2506.18896 (summaries, and notes on the paper in zhaoyang97/Paper-Notes-en, for the two losses and softmax
weights; CloudEngineHub/ReasonFlux, 72b1be9, uses the trained model and does not train it). (inferred): final = 1, the nearest step,
the chance in place of its log, the heat, negatives from the batch's other problems, and a reply's score: the mean over its thought
and its end. Judge and writer are models of the run; without `writer` the template is the response, its numbers blanked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Outputs,
    Problem,
    Recipe,
    Run,
    Sampling,
    Score,
    Scores,
    Term,
    Trajectory,
    Update,
    objective,
    with_surprise,
)
from rewardlab.data.columns import Data
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.imperfect_steps import imperfect_steps
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import count_cost, rows_in_steps
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import derive
from rewardlab.rewards.steps import step_texts
from rewardlab.rewards.task import correct
from rewardlab.rewards.weighed_steps import weighed_steps
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt
from rewardlab.text.answers import final_answer
from rewardlab.text.embedding import NGRAMS, embedded
from rewardlab.text.filled import filled
from rewardlab.worlds.rethought import sound_thoughts

# ---- what thinking that leads to a response is worth: its steps, by the response, a judge and one another; all, by a template

MARK = "</think>"
BLANK = "_"
"""What stands for a result in a plan."""
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_RESULT = re.compile(r"(=\s{0,3})[-+]?\$?\d+(?:[.,/]\d+)*")
PLAN = "{question}\n\nFollow this plan:\n{steps}"
"""What the policy reads with a template, with {question} and {steps}."""
EXTRACT = (
    "Problem:\n{question}\n\nSolution:\n{response}\n\nWrite down the plan of this solution as a short list of steps that says "
    "what is done in each, without any result."
)


@dataclass(frozen=True)
class Parts:
    """A reply's lines: those of the thought, and those of the response, each with its place among all lines."""

    thought: tuple[tuple[int, str], ...]
    response: tuple[tuple[int, str], ...]


def parts_of(t: Trajectory, mark: str) -> Parts | None:
    """None where the reply has no thought or no response, or where text and tokens disagree."""
    lines = [line.strip() for line in step_texts(t, "newline")]
    cut = next((i for i, line in enumerate(lines) if line.endswith(mark)), len(lines))
    # the mark may stand at the end of the last thought
    last, numbered = lines[cut].removesuffix(mark).strip() if cut < len(lines) else "", list(enumerate(lines))
    thought, response = [*numbered[:cut], *([(cut, last)] if last else [])], numbered[cut + 1 :]
    return Parts(tuple(thought), tuple(response)) if thought and response and len(lines) == len(t.steps) else None


def softmax_mean(values: Sequence[float]) -> float:
    """The mean of values weighted by their softmax: the larger ones count more."""
    weights = [math.exp(x) for x in values]
    return sum(w * x for w, x in zip(weights, values, strict=True)) / sum(weights)


@reward(over="groups")
def thought_steps(
    groups: list[Group], run: Run, *, quality: Reward, mark: str = MARK, embed: str = NGRAMS, heat: PositiveFloat = 0.1
) -> Scores:
    """At the end of each step of the thought, the softmax-weighted mean of three numbers from 0 to 1.

    alignment: the cosine with the nearest step of the response.  quality: what this reward of steps says of it.  coherence: the
    chance that the step before it, and not a step of another problem's replies, is the one before it: softmax of cosines / heat.
    The first step has no coherence, and nor has any where there is no other problem; what `quality` is silent on counts without it.
    mark: the line between thought and response.  embed: as in `text/embedding.py`. No verdict without a thought and a response.
    Zou et al. 2025, arXiv:2506.18896
    """
    rows = rows_in_steps(groups, "thought_steps")
    said = [{} if s.missing else dict(s.steps) for row in quality(groups, run) for s in row]
    parts = [parts_of(t, mark) for t in rows]
    texts = list({line for p in parts if p for _, line in (*p.thought, *p.response)})
    table = dict(zip(texts, embedded(texts, embed), strict=True)) if texts else {}
    of = [(t.problem.key, [line for _, line in p.thought]) for t, p in zip(rows, parts, strict=True) if p]
    scores = []
    for t, p, judged in zip(rows, parts, said, strict=True):
        if p is None:
            scores.append(Score(None, why="the reply has no thought that ends in a response"))
            continue
        others = [table[line] for key, lines in of if key != t.problem.key for line in lines]
        values = _three(p, table, others, heat, [judged.get(t.steps[i]) for i, _ in p.thought])
        scores.append(Score(steps=[(t.steps[i], softmax_mean(x)) for (i, _), x in zip(p.thought, values, strict=True)]))
    left = iter(scores)
    return [[next(left) for _ in group] for group in groups]


def _three(
    p: Parts, table: dict[str, np.ndarray], others: list[np.ndarray], heat: float, judged: Sequence[float | None]
) -> list[list[float]]:
    response = np.stack([table[line] for _, line in p.response])
    found = []
    for k, (_, line) in enumerate(p.thought):
        here = table[line]
        values = [float((response @ here).max())]
        if judged[k] is not None:
            values.append(float(judged[k] or 0.0))
        if k and others:
            logits = np.array([table[p.thought[k - 1][1]] @ here, *(x @ here for x in others)]) / heat
            values.append(float(1 / np.exp(logits - logits[0]).sum()))
        found.append(values)
    return found


@reward(over="groups")
def template_success(
    groups: list[Group], run: Run, *, n: PositiveInt = 4, model: str = "", mark: str = MARK, plan: str = PLAN,
    extract: str = EXTRACT, temperature: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """The pass rate of n replies sampled with the template of this reply's response in the prompt.

    model: who writes the template, a model of the run that reads `extract`; "": the response without its last line and its results
    (`without_results`): a plan that holds the answer would only be copied.
    plan: what the policy reads. Equal templates of a problem are tried once. No verdict without a thought and a response.
    """
    rows = [t for group in groups for t in group]
    parts = [parts_of(t, mark) for t in rows]
    found = _templates([(t, p) for t, p in zip(rows, parts, strict=True) if p], run, model, extract)
    asked: dict[tuple[str, str], Problem] = {}
    for t, template in found:
        p = t.problem.reworded(filled(plan, question=t.problem.question, steps=template))
        asked.setdefault((t.problem.key, template), p)
    read = run.policy.read([Trajectory(p) for p in asked.values()], [p.prompt for p in asked.values()]) if asked else []
    fits = [k for k, row in zip(asked, read, strict=True) if len(row) + run.max_new <= run.policy.context]
    begun = [row for row in read if len(row) + run.max_new <= run.policy.context]
    sampling = Sampling(run.max_new, temperature)
    done = run.policy.extend([x for x in begun for _ in range(n)], sampling, run.rng("templates")) if begun else []
    count_cost(run, len(done), sum(map(len, begun)))
    judged = run.verify([done[i : i + n] for i in range(0, len(done), n)], run) if done else []
    known = [[s.value >= 1.0 for s in row if s.value is not None] for row in judged]
    shares = {key: sum(row) / len(row) for key, row in zip(fits, known, strict=True) if row}
    of = {id(t): shares.get((t.problem.key, template)) for t, template in found}
    why = "no reply to its template could be judged"
    return [[Score(x) if (x := of.get(id(t))) is not None else Score(None, why=why) for t in group] for group in groups]


def without_results(lines: Sequence[str], question: str) -> str:
    """A response as a plan: without its last line, and with BLANK for its answer, for results after "=" and for computed numbers.

    Those are the ones that the question does not state. Numbers in words stay, and other answers than that of the last line.
    """
    stated = {number.replace(",", "") for number in _DIGITS.findall(question)}
    answer = final_answer(lines[-1]) or ""
    # a whole word, and no single letter of one
    named = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)") if answer else None
    plan = []
    for line in lines[:-1]:
        line = _RESULT.sub(rf"\1{BLANK}", named.sub(BLANK, line) if named else line)
        plan.append(_DIGITS.sub(lambda m: m[0] if m[0].replace(",", "") in stated else BLANK, line))
    return "\n".join(plan)


def _templates(replies: Sequence[tuple[Trajectory, Parts]], run: Run, model: str, extract: str) -> list[tuple[Trajectory, str]]:
    texts = [[line for _, line in p.response] for _, p in replies]
    if not model:
        return [(t, without_results(lines, t.problem.question)) for (t, _), lines in zip(replies, texts, strict=True)]
    asked = [
        t.problem.reworded(filled(extract, question=t.problem.question, response="\n".join(lines)))
        for (t, _), lines in zip(replies, texts, strict=True)
    ]
    writer = run.model(model)
    read = writer.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    said = writer.extend(read, Sampling(run.max_new, 0.0), run.rng("templates")) if read else []
    return [(t, x.reply.strip()) for (t, _), x in zip(replies, said, strict=True)]


JUDGE, WRITER = "judge", "writer"


@objective(unit="row", wants=("value",))
def steps_and_whole(out: Outputs, batch: Batch, run: Run, *, final: NonNegativeFloat = 1.0) -> Tensor:
    """The mean over the labelled steps of a reply of (sigmoid(V) - label)^2, and `final` times the same of the label at its end."""
    error = torch.where(batch.rewarded, (out.value.sigmoid() - batch.reward.clamp(0, 1)).square(), 0.0)
    end = batch.mask & (batch.mask.flip(1).cumsum(1).flip(1) == 1)
    steps = batch.rewarded & ~end
    return torch.where(steps, error, 0.0).sum(1) / steps.sum(1).clamp(min=1) + final * torch.where(end, error, 0.0).sum(1)


@reward(over="groups")
def thought_and_end(groups: list[Group], run: Run, *, inner: Reward, mark: str = MARK) -> Scores:
    """The mean of two numbers: the mean of `inner` over the steps of the thought, and `inner` at the end of the reply.

    Without a thought and a response, the mean over all steps takes the place of the first.
    """
    pairs = zip(groups, inner(groups, run), strict=True)
    return [[_thought_and_end(t, s, mark) for t, s in zip(*rows, strict=True)] for rows in pairs]


def _thought_and_end(t: Trajectory, said: Score, mark: str) -> Score:
    known, parts = dict(said.steps), parts_of(t, mark)
    thought = [known[t.steps[i]] for i, _ in parts.thought if t.steps[i] in known] if parts else []
    if said.missing or not known:
        return derive("thought_and_end", None, [said])
    mean = sum(thought or known.values()) / len(thought or known)
    return derive("thought_and_end", Term((mean + known[max(known)]) / 2), [said])


def reasonflux_prm(
    base: Recipe | None = None, *, quality: Reward | None = None, judge: str = "copy:policy", longest: int = 1024,
    writer: str = "", mark: str = MARK, embed: str = "ngrams", heat: float = 0.1, templates: int = 4, final: float = 1.0,
    online: float = 0.0, n: int = 4, choose: int = 8, init: str = "value-head", surprise: bool = False,
    lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """quality: a reward of steps; None: the word of the model `judge`, of so many tokens at most (longest).  writer: the model that
    writes templates.  embed, heat: of alignment and coherence.  templates: N.  final: weight of the loss at the end.  online:
    weight of the model's score in the policy's reward, if the base trains it.  n: replies per problem.  choose: replies to choose
    from when it is measured.  init, lr, epochs: of the model.  surprise: it also reads the surprise of the policy (`Learner.init`),
    which no paper has."""
    base = base or Recipe(name="reasonflux_prm", update=Update(problems=8))
    said = quality or judged_steps(model=JUDGE, form="each", max_new=longest)
    steps = {"steps": thought_steps(quality=said, mark=mark, embed=embed, heat=heat)}
    whole = {"template": template_success(n=templates, model=WRITER if writer else "", mark=mark)}
    labels = weighed_steps(inner=steps, weights=(1.0,), whole=whole, hard=False)
    prm = Recipe(reward=labels, objective=steps_and_whole(final=final), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    chances = threshold(step_score(model="prm"), at=0.0, soft=1.0)
    score = thought_and_end(inner=chances, mark=mark)
    outcome: Any = base.reward or correct()
    models = {JUDGE: "" if quality else judge, WRITER: writer}
    others = [Learner(name, made, Recipe(), every=0) for name, made in models.items() if made]
    return base.but(
        rollout=independent(n=n, steps="newline"), measure=reranked(by=score, n=choose),
        reward=(1 - online) * outcome + online * score if online else outcome,
        also=(*base.also, *others, Learner("prm", with_surprise(init, surprise), prm)),
    )  # fmt: skip


NOISY = imperfect_steps(auc=0.75, inner=sound_thoughts())
ANNOTATORS = {"three": thought_steps(quality=NOISY), "judge": NOISY}

fidelity = "core"
left_out = (
    "the larger model that judges steps and writes templates, training on the thoughts of a larger reasoning model, and choosing "
    "data to learn from by the scores"
)
data = Data(prompt="the question; replies are to think, and to respond after a mark such as </think>", answer="the gold answer")

check = Check(
    says="with alignment and coherence, targets of thoughts rank right steps above wrong ones better than the judge's word alone",
    versus=None, task="rethought", measure="auc.three", direction="higher", margin=0.08, against="auc.judge",
    by=label_quality(truth=sound_thoughts(), rollout=independent(n=4, steps="newline"), annotators=ANNOTATORS),
    problems=150, steps=1, fault=Within("auc.judge", high=0.85, says="AUC of the judge's word alone"), learns=None, start=None,
    tried="by steps that go on rightly, also from a wrong one, the three do no better than the judge: -.017 (2 seeds)",
    finding="the three rank right steps above wrong ones with AUC .72, the judge's word alone with .74: alignment and "
    "coherence add nothing where a step counts as right that goes on rightly from a wrong one",
    version=2, replaces="a step was right where it was the gold step: the truth had been changed after the three had failed",
)  # fmt: skip
baseline = None
kind = "reward-model"
