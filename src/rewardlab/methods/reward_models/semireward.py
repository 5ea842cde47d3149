"""SemiReward: a small model scores pseudo-labels, learnt from labelled data and made-up labels, and keeps those above the mean.

    S(y, y') = (cos(y, y') + 1) / 2              how like two labels are, as vectors
    rewarder R(x, y) in (0, 1):  (R(x, y) - S(y, true y))^2,    generator G(x) of made-up labels:  (R(x, G(x)) - 1)^2
    stage 1   both learn on labelled rows
    stage 2   every `every` steps, on a random share of rows, where labels that were kept count as true
    student   loss on labelled rows + weight * loss on the unlabelled ones with R(x, pseudo) > mean of the batch, of those that a
              plain student would keep: with a confidence above 0.95, of numbers all

A threshold on confidence trusts a student that is sure and wrong, and there is none for numbers. A rewarder reads the label beside
the features, and needs no threshold: it is the same for classes and for numbers.

Li et al. 2023, arXiv:2310.03013; Westlake-AI/SemiReward (semilearn/algorithms/semireward and srpseudolabel, configurations of
usb_cv): both masks together, stage 2 after 10% of the steps, every 10, rates 5e-4, batches of 8; the weight rises over 40% of the
steps; numbers are learnt under noise. In the code labels enter as whole numbers, so that the generator gets no gradient, one cosine
is taken of all labels of a batch, and one reward decides about a whole batch: here each label is a vector of its own, and each row
is decided by its own reward, as the paper describes it. (inferred): numbers as vectors of 16 bumps over their range, so that S
falls with distance; the share of rows; the small student and its noise. The layers of rewarder and generator are the code's, but
for the rewarder's MLP: there it reads what attention gives and the label's embedding as the rows of a batch twice as large, over
which rewards are averaged; here it reads their sum, so that each row has a reward of its own.

    rewardlab study semireward                                                   digits of scikit-learn
    rewardlab study semireward --goal number                                     the angle by which digits are rotated
    rewardlab study semireward --file rows.csv --label kind --labelled labelled.jsonl
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.data.files import write
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share
from rewardlab.tasks.few_labels import FewLabels, digits, from_file
from rewardlab.util.intervals import with_bounds

kind = "study"
WIDTH, BUMPS, CUTOFF, RISES = 128, 16, 0.95, 0.4
FILTERS = ("labelled", "confidence", "reward")


# ---- labels as vectors, and the two models -------------------------------------------------------------------------------


def similarity(y: Tensor, other: Tensor) -> Tensor:
    """S (...,) of label vectors (..., d): from 0, opposite, over 1/2, nothing in common, to 1."""
    return (F.cosine_similarity(y, other, dim=-1) + 1) / 2


def bumps(y: Tensor) -> Tensor:
    """(..., BUMPS) of numbers (...,) between 0 and 1: exp(-(distance / step)^2 / 2) from points at equal steps."""
    points = torch.linspace(0, 1, BUMPS, device=y.device)
    return torch.exp(-(((y[..., None] - points) * (BUMPS - 1)) ** 2) / 2)


def vector_of(problem: FewLabels, y: Tensor) -> Tensor:
    """The vectors of labels (B,)."""
    return F.one_hot(y, problem.classes).float() if problem.classes else bumps(y)


def made_up_vector(problem: FewLabels, logits: Tensor) -> Tensor:
    """The vectors of labels that the generator makes up, through which a gradient passes."""
    return logits.softmax(-1) if problem.classes else bumps(logits.sigmoid().squeeze(-1))


class Rewarder(nn.Module):
    """R(x, y) of features (B, features) and label vectors (B, labels): attention over both, the label added, and an MLP."""

    def __init__(self, features: int, labels: int):
        super().__init__()
        self.feature = nn.Sequential(nn.Linear(features, WIDTH), nn.LayerNorm(WIDTH))
        # without a bias, so that a label vector with a single 1 reads one row, as an embedding does
        self.label = nn.Sequential(nn.Linear(labels, WIDTH, bias=False), nn.LayerNorm(WIDTH))
        self.attention = nn.Linear(WIDTH, 1)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))
        self.ffn = nn.Sequential(nn.Linear(WIDTH, WIDTH // 2), nn.ReLU(), nn.Linear(WIDTH // 2, 1), nn.Sigmoid())

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        label = self.label(y)
        both = torch.stack((self.feature(x), label))  # (2, B, WIDTH)
        read = (self.attention(both).softmax(0) * both).sum(0)
        return self.ffn(self.mlp(read + label)).squeeze(-1)


def generator(features: int, outputs: int) -> nn.Sequential:
    """G(x): made-up labels, as logits of classes or a number."""
    sizes = (features, 256, 128, 64)
    layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


# ---- what is learnt ------------------------------------------------------------------------------------------------------


class Judge:
    """A rewarder and its generator, which learn together."""

    def __init__(self, features: int, problem: FewLabels, rate: float):
        self.rewarder, self.generator = Rewarder(features, problem.classes or BUMPS), generator(features, problem.outputs)
        self.problem = problem
        self.optimizers = [torch.optim.Adam(model.parameters(), lr=rate) for model in (self.rewarder, self.generator)]

    def learn(self, x: Tensor, y: Tensor) -> None:
        """One update of both, on features (B, features) and the vectors of labels that count as true."""
        made_up = made_up_vector(self.problem, self.generator(x))
        of_rewarder = (self.rewarder(x, made_up.detach()) - similarity(made_up.detach(), y)).square().mean()
        self._step(0, of_rewarder)
        self._step(1, (self.rewarder(x, made_up) - 1).square().mean())

    def _step(self, which: int, loss: Tensor) -> None:
        self.optimizers[which].zero_grad()
        loss.backward()
        self.optimizers[which].step()

    @torch.no_grad()
    def kept(self, x: Tensor, y: Tensor) -> Tensor:
        """(B,) which labels have a reward above the mean of the batch."""
        rewards = self.rewarder(x, y)
        return rewards > rewards.mean()


class Student(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.head = nn.Linear(WIDTH, outputs)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(x)
        return self.head(features), features


@dataclass(frozen=True)
class Training:
    """steps: of the student.  batch: labelled rows of a step, and unlabelled ones.  rate: of all models.  start: share of the steps
    in stage 1.  every: steps between the rewarder's in stage 2.  share: of the unlabelled rows that such a step reads.
    noise: under which numbers are learnt, in the unit of the inputs."""

    steps: int
    batch: int
    rate: float
    start: float
    every: int
    share: float
    noise: float


@dataclass
class Trained:
    """A student and its judge; its mean error on held-out rows, and that of the pseudo-labels kept in stage 2 (NaN where the truth
    is not known) and their share."""

    student: Student
    judge: Judge
    test: float
    kept_error: float
    kept: float


def trained(problem: FewLabels, filter: str, how: Training, seed: int) -> Trained:
    """Train a student on the labelled rows and on the pseudo-labels that the filter keeps."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    (x, y), (other, hidden) = problem.labelled, problem.unlabelled
    student = Student(x.shape[1], problem.outputs)
    judge, adam = Judge(WIDTH, problem, how.rate), torch.optim.AdamW(student.parameters(), lr=how.rate, weight_decay=5e-4)
    errors: list[float] = []
    seen = 0
    for step in range(how.steps):
        second = step >= how.start * how.steps
        at, to = (torch.from_numpy(rng.integers(0, len(rows), how.batch)) for rows in (x, other))
        logits, features = student(x[at])
        pseudo, keep = selected(problem, student, judge, other[to], filter if second or filter == "labelled" else "confidence")
        # a student that is to predict numbers sees them under noise, or it would agree with itself
        again, _ = student(other[to] if problem.classes else other[to] + how.noise * torch.randn_like(other[to]))
        weight = min(1.0, step / (RISES * how.steps))
        loss = problem.loss(logits, y[at]).mean() + weight * (problem.loss(again, pseudo) * keep).mean()
        if not second:
            judge.learn(features.detach(), vector_of(problem, y[at]))
        elif step % how.every == 0 and filter == "reward":
            second_stage(problem, student, judge, how.share, rng)
        if second:
            seen += how.batch
            errors += problem.error(pseudo, hidden[to])[keep].tolist() if hidden is not None else [float("nan")] * int(keep.sum())
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        test = float(problem.error(problem.said(student(problem.test[0])[0]), problem.test[1]).mean())
    return Trained(student, judge, test, float(np.mean(errors)) if errors else float("nan"), len(errors) / max(1, seen))


@torch.no_grad()
def selected(problem: FewLabels, student: Student, judge: Judge, x: Tensor, filter: str) -> tuple[Tensor, Tensor]:
    """The pseudo-label of each row, and which of them the filter keeps: (B,) and (B,)."""
    logits, features = student(x)
    pseudo = problem.said(logits)
    if filter == "labelled":
        return pseudo, torch.zeros(len(x), dtype=torch.bool)
    # numbers have no confidence
    sure = logits.softmax(-1).amax(-1) > CUTOFF if problem.classes else torch.ones(len(x), dtype=torch.bool)
    return pseudo, sure & judge.kept(features, vector_of(problem, pseudo)) if filter == "reward" else sure


def second_stage(problem: FewLabels, student: Student, judge: Judge, share: float, rng: np.random.Generator) -> None:
    """The judge learns from the labelled rows and from a random share of the others, where it keeps the student's label."""
    (x, y), other = problem.labelled, problem.unlabelled[0]
    some = other[torch.from_numpy(rng.permutation(len(other))[: max(2, round(share * len(other)))])]
    pseudo, keep = selected(problem, student, judge, some, "reward")
    with torch.no_grad():
        features = student(torch.cat((x, some[keep])))[1]
    judge.learn(features, vector_of(problem, torch.cat((y, pseudo[keep]))))


# ---- the study -----------------------------------------------------------------------------------------------------------


@study
def filters_compared(
    run: Run, *, goal: Literal["class", "number"], labels: PositiveInt, file: str, label: str, labelled: str, repeats: PositiveInt,
    updates: PositiveInt, batch: PositiveInt, rate: PositiveFloat, start: Share, every: PositiveInt, share: Share, noise: float,
) -> dict[str, float]:  # fmt: skip
    """FILTER.error: of held-out rows, the share of wrong classes, or how far numbers are off; FILTER.kept_error: of pseudo-labels
    kept in stage 2, where the truth is known; FILTER.kept: how many are kept. Filters: labelled (none is used), confidence (above
    0.95; of numbers all), reward. gain, cleaner: by how much confidence's errors exceed reward's, on the same rows."""
    how, found = Training(updates, batch, rate, start, every, share, noise), []
    for repeat in range(repeats):
        seed = seed_of("semireward", run.seed, repeat) % 2**31
        rng = np.random.default_rng(seed)
        problem = from_file(file, label, goal, rng) if file else digits(goal, labels, rng)
        found.append({name: trained(problem, name, how, seed) for name in FILTERS})
    if labelled:
        _write(problem, found[-1]["reward"], labelled)
    each = {
        f"{name}.{what}": np.array([getattr(one[name], field) for one in found])
        for name in FILTERS for what, field in (("error", "test"), ("kept_error", "kept_error"), ("kept", "kept"))
    }  # fmt: skip
    gains = with_bounds("gain", each["confidence.error"] - each["reward.error"])
    cleaner = with_bounds("cleaner", each["confidence.kept_error"] - each["reward.kept_error"])
    # of nothing kept, and of rows whose truth nobody knows, there is no error
    return {k: v for k, v in (gains | cleaner | {k: float(v.mean()) for k, v in each.items()}).items() if not np.isnan(v)}


def _write(problem: FewLabels, done: Trained, out: str) -> None:
    """Each unlabelled row, by its place among them, with its pseudo-label, its reward, and whether it is kept."""
    x = problem.unlabelled[0]
    pseudo, keep = selected(problem, done.student, done.judge, x, "reward")
    with torch.no_grad():
        rewards = done.judge.rewarder(done.student(x)[1], vector_of(problem, pseudo))
    each = zip(pseudo.tolist(), rewards.tolist(), keep.tolist(), strict=True)
    write(out, [{"row": i, "label": problem.restore(y), "reward": r, "kept": k} for i, (y, r, k) in enumerate(each)])


def semireward(
    base: Recipe | None = None, *, goal: Literal["class", "number"] = "class", labels: int = 20, file: str = "",
    label: str = "label", labelled: str = "", repeats: int = 3, updates: int = 1000, batch: int = 8, rate: float = 5e-4,
    start: float = 0.1, every: int = 10, share: float = 0.1, noise: float = 0.1,
) -> Recipe:  # fmt: skip
    """goal: whether labels are classes or numbers.  labels: of the digits.  file, label: rows of numbers of one's own, and the
    column of their labels, empty where there is none.  labelled: a file for the pseudo-labels of the last repeat.  repeats: on
    other rows, from other weights.  updates: steps of the student.  The rest: `Training`."""
    base = base or Recipe(name="semireward")
    return base.but(study=filters_compared(
        goal=goal, labels=labels, file=file, label=label, labelled=labelled, repeats=repeats, updates=updates, batch=batch,
        rate=rate, start=start, every=every, share=share, noise=noise,
    ))  # fmt: skip


fidelity = "core"
left_out = (
    "the moving average of the rewarder's weights; FlexMatch, FreeMatch and SoftMatch as students, and images, texts and sounds "
    "through pretrained networks: here an MLP learns from numbers"
)

check = Check(
    says="with few labels the pseudo-labels that the rewarder keeps are wrong less often than those of a student that is sure of "
    "itself", versus=None, task="arithmetic", measure="reward.kept_error", direction="lower", margin=0.01,
    against="confidence.kept_error", settings={"repeats": 3},
    moved=Within("gain", low=0.0, says="held-out digits that are right with the rewarder and wrong without it"),
    tried="one seed, three repeats: .18 of the kept labels wrong and .06, of held-out digits .29 and .23 (.24 with labelled rows "
    "alone); angles (100 labels, one repeat): kept ones off by 7.0 and 8.3 degrees, held-out ones by 8.1 and 7.5. The reward tells "
    "right classes from wrong ones with an AUC of .44 to .50, confidence with .84 to .88: after 100 or 300 updates on 20 rows the "
    "rewarder knows little (reward alone, without confidence: half of the digits wrong)",
    finding="of the pseudo-labels that the rewarder keeps 8% are wrong, of those that a sure student keeps 5%, and it keeps a "
    "third as many (12% of the images, 33%): in five seeds no sign that it filters better here, where 27% are wrong for a student "
    "that learns from the labels alone",
)  # fmt: skip
