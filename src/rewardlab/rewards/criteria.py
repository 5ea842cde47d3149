"""Criteria for judging steps: a tree that grows as a judge names new ones, and which criteria apply to a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory
from rewardlab.rewards.monte_carlo import count_cost
from rewardlab.rewards.own_verdict import chance_of
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeInt, PositiveInt
from rewardlab.text.embedding import NGRAMS, embedded
from rewardlab.text.filled import filled

TREE = "criteria.tree"
"""The key of `run.memory` that holds the tree: "branches", lists of texts, and the "step" in which it grew last."""
GENERAL = (
    "The calculation in this step is right.", "This step follows from the steps before it.",
    "This step brings the solution nearer to its end.", "This step is clearly written.",
)  # fmt: skip
NAME = (
    "Problem:\n{question}\n\nSolution so far:\n{steps}\n\nBy what should the last step be judged? Write down criteria, each as one "
    "sentence on a line of its own that begins with '- '."
)
JUDGE = (
    "Problem:\n{question}\n\nSolution so far:\n{steps}\n\nLook at the last step alone. Is this true of it? {criterion}\n"
    "Answer Yes or No."
)


@dataclass
class CriteriaTree:
    """Fine criteria, by branches of those that are alike.  same, alike: cosines from which two texts are one, or of one branch."""

    branches: list[list[str]] = field(default_factory=list)
    same: float = 0.9
    alike: float = 0.4
    embed: str = NGRAMS

    def grow(self, texts: Sequence[str]) -> None:
        """Add each text to the branch whose mean is nearest, or as a branch of its own; texts that are there are left out."""
        for text in texts:
            known = [x for branch in self.branches for x in branch]
            table = embedded([text, *known], self.embed)
            near = table[1:] @ table[0] if known else np.zeros(0)
            if (near >= self.same).any():
                continue
            means = self._means(near)
            if means and max(means) >= self.alike:
                self.branches[int(np.argmax(means))].append(text)
            else:
                self.branches.append([text])

    def relevant(self, step: str, k: int) -> list[str]:
        """The k criteria for a step: from the branches nearest to its text, in this order, the nearest first; 0: all."""
        known = [x for branch in self.branches for x in branch]
        if not k or k >= len(known):
            return known
        table = embedded([step, *known], self.embed)
        near = table[1:] @ table[0]
        means = self._means(near)
        at, found = 0, []
        for branch, mean in zip(self.branches, means, strict=True):
            found += [(mean, float(x), text) for x, text in zip(near[at : at + len(branch)], branch, strict=True)]
            at += len(branch)
        # a stable sort: of equally near ones the older first
        return [text for _, _, text in sorted(found, key=lambda f: (-f[0], -f[1]))[:k]]

    def _means(self, near: np.ndarray) -> list[float]:
        ends = np.cumsum([len(branch) for branch in self.branches])
        return [float(near[end - len(branch) : end].mean()) for end, branch in zip(ends, self.branches, strict=True)]


def named_criteria(rows: Sequence[Trajectory], run: Run, model: str, max_new: int) -> list[str]:
    """The criteria that a model of the run names for the last steps of these rows, in their order."""
    asked = [t.problem.reworded(filled(NAME, question=t.problem.question, steps=t.reply)) for t in rows]
    judge = run.model(model)
    read = judge.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    fits = [t for t in read if len(t) + max_new <= judge.context]
    said = judge.extend(fits, Sampling(max_new, 0.0), run.rng("criteria")) if fits else []
    count_cost(run, len(said), sum(map(len, fits)))
    lines = [line.strip() for t in said for line in t.reply.splitlines()]
    return [line.removeprefix("- ").strip() for line in lines if line.startswith("- ") and len(line) > 2]


@reward(over="groups")
def judged_criteria(
    groups: list[Group], run: Run, *, model: str = "judge", k: NonNegativeInt = 4, named: NonNegativeInt = 4,
    seeds: tuple[str, ...] = GENERAL, embed: str = NGRAMS, max_new: PositiveInt = 96,
) -> Scores:  # fmt: skip
    """A term per criterion that applies to the last step of an unfinished reply: the chance that the step meets it.

    The model of the run says so, Yes against No. Criteria are the `k` of the tree that are nearest to the step of the group's first
    row (0: all), so that siblings are judged alike. The tree begins with `seeds`, and grows once in each training step, by what the
    model names for the first `named` groups; it is kept in the run's memory.  embed: as in `text/embedding.py`.  max_new: tokens of
    what is named.  Logged: criteria, in the tree.  Yin et al. 2025, arXiv:2507.17849
    """
    kept = run.memory.get(TREE, {})
    tree = CriteriaTree([[*x] for x in kept.get("branches", [])], embed=embed)
    tree.grow(seeds)
    if named and not run.held_out and kept.get("step") != run.step:
        tree.grow(named_criteria([g[0] for g in groups[:named] if g], run, model, max_new))
        run.memory[TREE] = {"branches": tree.branches, "step": run.step}
    run.log("criteria", sum(map(len, tree.branches)))
    chosen = [tree.relevant(group[0].turns[-1].text, k) if group else [] for group in groups]
    terms: list[list[dict[str, Term]]] = [[{} for _ in group] for group in groups]
    for text in dict.fromkeys(c for row in chosen for c in row):
        at = [g for g, row in enumerate(chosen) if text in row]
        for g, row in zip(at, by_criterion(criterion=text, model=model)([groups[g] for g in at], run), strict=True):
            for known, s in zip(terms[g], row, strict=True):
                known |= {} if s.value is None else {text: Term(s.value)}
    none = Score(None, why="no criterion could be asked about")
    return [[Score(terms=known) if known else none for known in row] for row in terms]


@reward(over="groups")
def by_criterion(groups: list[Group], run: Run, *, criterion: str, model: str = "judge", max_new: PositiveInt = 4) -> Scores:
    """The chance that the last step of an unfinished reply meets a criterion, by a model of the run: Yes against No.

    No verdict where the question does not fit the model's context.
    """
    judge, rows = run.model(model), [t for group in groups for t in group]
    said = [{"question": t.problem.question, "steps": t.reply, "criterion": criterion} for t in rows]
    asked = [t.problem.reworded(filled(JUDGE, **x)) for t, x in zip(rows, said, strict=True)]
    read = judge.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    fits = [i for i, t in enumerate(read) if len(t) + max_new <= judge.context]
    chances = dict(zip(fits, chance_of(judge, [read[i] for i in fits], [""] * len(fits), "Yes", "No"), strict=True))
    count_cost(run, len(fits), sum(len(read[i]) for i in fits))
    scores = iter([Score(chances.get(i), why="" if i in chances else "it does not fit the context") for i in range(len(rows))])
    return [[next(scores) for _ in group] for group in groups]
