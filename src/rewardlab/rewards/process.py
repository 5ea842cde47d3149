"""Process rewards: step scores as one number for search, and step by step for training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal
from weakref import WeakSet

from rewardlab.core import Group, Problem, Run, Score, Scores, Term, Trajectory
from rewardlab.data.pictures import refuse_pictures
from rewardlab.data.solutions import asked
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import Share
from rewardlab.text.splitters import cut, mark
from rewardlab.util.progress import console

PREFIX = "prm:"
"""Before the name of a checkpoint: a scorer of steps, and not a policy."""
_TOLD: WeakSet[Any] = WeakSet()
"""Scorers of which it has been said that they are asked about other steps than they learnt from."""
FORMS: dict[str, Callable[[Sequence[float]], float]] = {
    "last": lambda x: x[-1], "min": min, "product": math.prod, "mean": lambda x: sum(x) / len(x),
}  # fmt: skip


@reward(over="groups")
def prm_score(
    groups: list[Group], run: Run, *, model: str = "prm", form: Literal["last", "min", "product", "mean"] = "last",
    splitter: Literal["auto", "newline", "paragraph", "tag", "sentence"] = "auto",
) -> Scores:  # fmt: skip
    """A reply's score, finished or not, from its steps' chances of being right: the last, the minimum, their product or their mean.

    model: a process reward model: `prm:PATH`, or the name of a `Learner` that begins from one. It reads text, so that its tokenizer
    may be another than the policy's.  Steps: those of the search tree that the row comes from, else what the splitter makes of the
    reply.  Which form fits depends on how the model learnt: Lightman et al. 2023 (arXiv:2305.20050) take the product, Wang et al.
    2024 (arXiv:2312.08935) the least, Snell et al. 2024 (arXiv:2408.03314) the last.
    No verdict for an empty reply, and for one that is longer than the model's context.
    """
    scorer = scorer_of(run, model)
    by = splitting(scorer, splitter)
    texts = [[steps_of(t, by) for t in group] for group in groups]
    found = _judged(groups, texts, scorer)
    # named after the reward by the slot
    return [[Score(None, why=said) if isinstance(said, str) else Score(FORMS[form](said)) for said in row] for row in found]


@reward(over="groups")
def prm_steps(
    groups: list[Group], run: Run, *, model: str = "prm", clip: Share | None = None, delta: bool = False,
    splitter: Literal["auto", "newline", "paragraph", "tag", "sentence"] = "auto",
) -> Scores:  # fmt: skip
    """At the end of each step, its chance of being right by a process reward model: dense rewards.

    The sum of such rewards grows with every further step, which a policy soon finds out. Two cures (Gao et al. 2024,
    arXiv:2410.15115): clip pays min(r - clip, 0), so that right steps are paid nothing and padding neither; delta pays r_k -
    r_{k+1}, at the last step r itself, so that what a reply is paid in all is its first step's r, however many follow. That holds
    of returns, as under the method reward_to_go, PPO or REINFORCE++: where credit centres every step, as in GRPO, RLOO and Dr.
    GRPO, a step that is paid 0 earns minus the mean of the others (`train` warns). They were published beside an outcome reward,
    `correct() + prm_steps(...)`: alone, a reply without steps loses nothing by them. A gate, `correct() >> prm_steps(...)`, is no
    cure: among right replies longer ones still earn more (results/process/rewards.json). Another is the minimum in place of the sum
    (the method pure_min_form).
    model, splitter: as in `prm_score`. Steps end where the splitter says; or else where the rollout has marked them, unless the
    scorer says what its own steps are. A reply that the model cannot read, and one whose text has
    another number of steps than its tokens, get no verdict.
    """
    policy, scorer = run.policy, scorer_of(run, model)
    by = splitting(scorer, splitter)
    # a scorer that learnt other steps than lines has its own, whatever the rollout has marked
    own = splitter == "auto" and by != "newline"
    groups = [[t if t.steps and not own else mark(t, by, policy.pieces, policy.name) for t in group] for group in groups]
    texts = [[_cut(t, by) for t in group] for group in groups]
    found = _judged(groups, texts, scorer)
    return [[_dense(t, said, clip, delta) for t, said in zip(*pair, strict=True)] for pair in zip(groups, found, strict=True)]


@reward(over="groups")
def doubted_steps(
    groups: list[Group], run: Run, *, model: str = "prm", below: Share = 0.5,
    splitter: Literal["auto", "newline", "paragraph", "tag", "sentence"] = "auto",
) -> Scores:  # fmt: skip
    """1 at the end of each step whose chance of being right is less than `below` by a process reward model, else 0: the steps
    that a critic would list as wrong.  model, splitter: as in `prm_steps`.
    """
    found = prm_steps(model=model, splitter=splitter)(groups, run)
    return [[s if s.missing else Score(steps=[(at, float(r < below)) for at, r in s.steps]) for s in row] for row in found]


def splitting(scorer: Any, splitter: str) -> str:
    """How replies are cut for a scorer. A splitter other than that of the steps which it learnt from is told, once."""
    own = getattr(scorer, "splitter", "")
    if splitter == "auto":
        return own or "newline"
    if own and own != splitter and scorer not in _TOLD:
        _TOLD.add(scorer)
        told = f"warning: the scorer learnt from steps by {own!r}, and is asked about steps by {splitter!r}"
        console.print(told, highlight=False, markup=False, soft_wrap=True)
    return splitter


def scorer_of(run: Run, model: str) -> Any:
    """The scorer of this name in the run; one that is named by its checkpoint is loaded when it is first needed."""
    if model.startswith(PREFIX) and model not in run.models:
        from rewardlab.prm import load_scorer

        # among the models of the run, its tokens are counted with theirs
        run.models[model] = load_scorer(model, "auto" if run.policy is None else str(run.policy.device))
    scorer = run.model(model)
    if not hasattr(scorer, "fits"):
        raise RewardlabError(
            f"the model {model!r} scores no steps (it is a {type(scorer).__name__}): name a process reward model, {PREFIX}PATH, or "
            "read a value head at the end of a row by model_score"
        )
    return scorer


def steps_of(t: Trajectory, splitter: str) -> list[str]:
    """The steps of a row as text, without blank ones: those of its search tree, or else of its reply."""
    tree = bool(t.path) and len(t.turns) == len(t.path) + 1
    steps = [turn.text.strip() for turn in t.turns[1:]] if tree else _cut(t, splitter)
    return [step for step in steps if step]


def _cut(t: Trajectory, splitter: str) -> list[str]:
    return [step for reply in t.replies for step in cut(reply, splitter)]


def _judged(groups: list[Group], texts: list[list[list[str]]], scorer: Any) -> list[list[list[float] | str]]:
    """For each rollout its steps' chances, or why there are none. Equal solutions are scored once."""
    keys = [[(asked_of(t.problem), tuple(x)) for t, x in zip(*pair, strict=True)] for pair in zip(groups, texts, strict=True)]
    different = list(dict.fromkeys(key for row in keys for key in row))
    refused = {key: why for key in different if (why := _why_not(scorer, *key))}
    read = [key for key in different if key not in refused]
    chances = dict(zip(read, scorer.score(read), strict=True)) if read else {}
    return [[refused[key] if key in refused else chances[key] for key in row] for row in keys]


def asked_of(problem: Problem) -> str:
    """The whole prompt of a problem as the text that scorers of steps learn from: its system message and all its turns."""
    refuse_pictures(problem.prompt, "a scorer of steps")
    return asked([(message.role, message.text) for message in problem.prompt])


def _why_not(scorer: Any, prompt: str, steps: tuple[str, ...]) -> str:
    if not steps or not all(steps):
        return "the reply is blank"
    return "" if scorer.fits(prompt, steps) else f"the reply is longer than the scorer's context of {scorer.context} tokens"


def _dense(t: Trajectory, said: list[float] | str, clip: float | None, delta: bool) -> Score:
    if isinstance(said, str):
        return Score(None, why=said)
    if len(said) != len(t.steps):
        why = f"{len(said)} steps in the text, {len(t.steps)} in the tokens: do reward and rollout use one splitter?"
        return Score(None, why=why)
    paid = said if clip is None else [min(r - clip, 0.0) for r in said]
    if delta:
        paid = [a - b for a, b in zip(paid, [*paid[1:], 0.0], strict=True)]
    return Score(terms={"prm_steps": Term(None, tuple(zip(t.steps, paid, strict=True)))})
