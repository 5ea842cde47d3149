"""Scores of a reward model, and its preference for a reply over samples of the reference policy."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

import numpy as np

from rewardlab.core import Group, Message, Problem, Run, Sampling, Score, Scores, Term, Trajectory, Turn
from rewardlab.data.pictures import refuse_pictures
from rewardlab.errors import RewardlabError
from rewardlab.rewards.process import PREFIX as OF_STEPS
from rewardlab.rewards.process import scorer_of
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import derive
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.reference import reference_of
from rewardlab.text.splitters import mark
from rewardlab.util.outputs import last_values, values
from rewardlab.util.progress import console

PREFIX = "model:"
"""Before the checkpoint of a trained reward model."""
CUT_OFF = "tokens that the reward model reads"
"""In the reason of a score of less than the whole conversation."""
_TOLD: WeakSet[Any] = WeakSet()
"""Models of which this has been said."""


@reward(over="groups")
def model_score(groups: list[Group], run: Run, *, model: str = "reward_model") -> Scores:
    """The score of a reply by a reward model. A Bradley-Terry model's score is unbounded, and has no zero.

    model: its name in the run (a `Learner` of the recipe), a model with a value head, which is read at the reply's end, the token
    that ends it: a reply that was cut off is scored as if it had ended there; or
    model:PATH, a trained sequence classifier (a run, an export, or any of transformers'). That reads text, so that its tokenizer
    may be another than the policy's; PATH?label=NAME names one of several labels (`models/reward_model.py`). One that was trained
    to read a reference reads the row's `reference`, or its answer. What is longer than it reads is cut off: the score says so in
    `why`, and the share of such replies is logged as `reward_cut_off`.
    """
    if model.startswith(PREFIX):
        asked = [(*conversation(t), reference_of(t.problem)) for group in groups for t in group]
        rows = iter(scored(trained_model(run, model), asked, run))
        return [[next(rows) for _ in group] for group in groups]
    # one flat batch, for speed; the values come back in the order of the groups
    scorer = _plain(reader(run, model))
    said = iter(last_values(scorer, _ended([t for group in groups for t in group], run.policy, scorer)))
    return [[Score(next(said)) for _ in group] for group in groups]


def _ended(rows: list[Trajectory], policy: Any, scorer: Any) -> list[Trajectory]:
    """The rows, each ended by the token that ends a reply: at no other place has a reward model learnt what to say.

    A reply that was cut off at its longest, or by a text that stops it, is scored as if it had ended there, as model:PATH does.
    """
    ends, longest = getattr(policy, "ends", ()), int(getattr(scorer, "context", 0)) or sys.maxsize
    open_at = [i for i, t in enumerate(rows) if ends and t.stop not in (None, "entropy") and _is_open(t.turns[-1], ends)]
    cut = [rows[i] if len(rows[i]) < longest else rows[i].cut(longest - 1) for i in open_at]
    ended = list(rows)
    for i, t in zip(open_at, policy.write(cut, [""] * len(cut)) if cut else (), strict=True):
        ended[i] = t
    return ended


def _is_open(turn: Turn, ends: Collection[int]) -> bool:
    return turn.author is not None and turn.vectors is None and len(turn.ids) > 0 and int(turn.ids[-1]) not in ends


def scored(model: Any, rows: Sequence[Any], run: Run, about: Sequence[str] = ()) -> list[Score]:
    """The scores of a trained reward model.  rows: conversations up to the reply, with the reply.  about: the principle of each,
    for a model that is asked about it after the reply.

    The score of a conversation that is longer than the model reads says what was cut off; the first such are told, once a model.
    """
    read = model.read(rows, about) if about else model.read(rows)
    found = sum(cut for _, cut, _ in read)
    if not found:
        return [Score(score) for score, _, _ in read]
    run.log("reward_cut_off", found / len(read))
    lost, limit = "the end of its prompt" if model.reads_pairs else "its beginning", f"{model.longest:,} {CUT_OFF}"
    if model not in _TOLD:
        _TOLD.add(model)
        console.print(
            f"note: {found:,} of the first {len(read):,} conversations to be scored {'is' if found == 1 else 'are'} longer than "
            f"the {limit} ({model.found.folder}): {lost} is cut off, here and from now on. Shorter prompts, shorter replies "
            "(--max-new) or a reward model that reads more avoid it",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip
    why = f"the conversation is longer than the {limit}: {lost} was cut off"
    return [Score(score, why=why if cut else "") for score, cut, _ in read]


def trained_model(run: Run, model: str, *, written: bool = False) -> Any:
    """The reward model model:PATH, loaded when it is first needed; among the models of the run, its tokens are counted too.

    written: prompts and replies are written as the model was taught to read them; else one that reads more is refused.
    """
    # apart, or one that may be shown prompt and reply alone would be found where the other was loaded first
    name = f"{model} (written)" if written else model
    if name not in run.models:
        from rewardlab.models.reward_model import load_reward_model

        device = "auto" if run.policy is None else str(run.policy.device)
        run.models[name] = load_reward_model(model, device, written=written)
    return run.models[name]


def load_named(reward: Reward, run: Run) -> None:
    """Load the trained models that parts of a reward name (model:PATH, prm:PATH) at once, and not when they are first asked."""
    for part in reward.walk():
        if (named := str(part.settings.get("model", ""))).startswith(PREFIX):
            trained_model(run, named, written=writes(part))
        elif named.startswith(OF_STEPS):
            scorer_of(run, named)


def writes(part: Any) -> bool:
    """Whether a reward writes what its reward model reads besides prompt and reply, as `principled_score` does."""
    return "principles" in part.settings


def _plain(scorer: Any) -> Any:
    """The model of the run. Raises RewardlabError for one that was taught to read more than a reply."""
    if reads := getattr(scorer, "reads", ""):
        raise RewardlabError(f"the model {scorer.name!r} of this run reads {reads}: of a reply alone its score says nothing")
    return scorer


def conversation(t: Trajectory) -> tuple[list[Message], str]:
    """What was said before the last reply, and that reply."""
    refuse_pictures(t.problem.prompt, "a reward model")
    messages = list(t.problem.prompt)
    # the first turn is the prompt as the policy reads it, with the message by which an environment opens the episode
    asked, read = "\n".join(m.text for m in messages), t.turns[0].text if t.turns else ""
    if messages and read.startswith(f"{asked}\n"):
        messages.append(Message("user", read[len(asked) + 1 :]))
    opened = len(messages)
    messages += [Message("user" if turn.author is None else "assistant", turn.text) for turn in t.turns[1:]]
    last = max((i for i, m in enumerate(messages) if m.role == "assistant" and i >= opened), default=len(messages))
    return messages[:last], messages[last].text if last < len(messages) else ""


@reward(over="groups")
def step_score(
    groups: list[Group],
    run: Run,
    *,
    model: str = "prm",
    splitter: Literal["newline", "paragraph", "tag", "sentence", "token"] = "newline",
) -> Scores:
    """At the end of each step, the value head's output there: log-odds, if it was trained by a loss of `step_labels`.

    model: its name in the run (a `Learner` of the recipe).  Steps end where the splitter says, unless the rollout has marked them.
    `aggregate(step_score(), by="min")` scores a reply by its worst step, and `threshold(step_score(), at=0, soft=1)` gives chances.
    No verdict on an empty reply.
    """
    policy = run.policy
    rows = [[t if t.steps else mark(t, splitter, policy.pieces, policy.name) for t in group] for group in groups]
    said = iter(values(reader(run, model), [t for row in rows for t in row]))
    return [[_at_ends(t, next(said)) for t in row] for row in rows]


def _at_ends(t: Trajectory, said: np.ndarray) -> Score:
    return Score(steps=[(at, float(said[at])) for at in t.steps], why="" if t.steps else "the policy wrote nothing")


def reader(run: Run, name: str) -> Any:
    """The model of this name. Replies are scored by token id, and an id must be the same text to both models."""
    if name not in run.models and (Path(name).expanduser() / "config.json").is_file():
        raise RewardlabError(
            f"model={name!r} of a reward is the name of a model of the run, and not a folder; a reward model in a folder is "
            f"model='{PREFIX}{name}'"
        )
    scorer = run.model(name)
    if scorer.tokenizer.get_vocab() != run.policy.tokenizer.get_vocab():
        raise RewardlabError(f"the model {name!r} cannot score the policy's replies: their tokenizers differ")
    return scorer


@reward(over="groups")
def category_score(
    groups: list[Group], run: Run, *, models: str, categories: tuple[str, ...] = (), column: str = "category"
) -> Scores:
    """The score by the reward model of the prompt's category: MODELS_0 for the first of these categories, MODELS_1 for the second,
    ...

    Without categories MODELS_0 says it of all prompts. Those of another category get no verdict.
    """
    scores: Scores = [[Score(None, why="no reward was learnt for this category")] * len(group) for group in groups]
    for i, category in enumerate(categories or ("",)):
        own = [g for g, group in enumerate(groups) if group and (not categories or group[0].problem.meta.get(column) == category)]
        found = model_score(model=f"{models}_{i}")([groups[g] for g in own], run) if own else []
        for g, row in zip(own, found, strict=True):
            scores[g] = row
    return scores


@reward(over="groups", needs=("ref",))
def preferred(groups: list[Group], run: Run, *, inner: Reward, n: PositiveInt = 1) -> Scores:
    """The mean over n replies y_m of the reference policy of sigmoid(r(y) - r(y_m)), r the reward `inner`; from 0 to 1.

    If r is a Bradley-Terry model's score, that is the probability that y is preferred to what the policy wrote before training.
    Replies of the reference that get no verdict are left out; where all are, no reply to that problem gets one. They are written
    anew at each call, and their tokens count. For replies of one turn.
    """
    written = reference_replies([group[0].problem for group in groups], run, n)
    bars = [[s.total for s in row if s.total is not None] for row in inner(written, run)]
    if known := [bar for row in bars for bar in row]:
        run.log("reference_score", sum(known) / len(known))
    return [[_against(s, row) for s in scores] for scores, row in zip(inner(groups, run), bars, strict=True)]


def reference_replies(problems: list[Problem], run: Run, n: int) -> list[Group]:
    """n replies of the reference policy to each problem."""
    reference = run.model("reference")
    prompts = reference.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = reference.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new), run.rng("reference"))
    return [done[i : i + n] for i in range(0, len(done), n)]


def _against(score: Score, bars: list[float]) -> Score:
    """The score of a reply whose references scored `bars`."""
    if score.total is None or not bars:
        return derive("preferred", None, [score])
    # 1 / (1 + exp(-z)) overflows for z below -700; a tanh does not
    chances = [(1 + math.tanh((score.total - bar) / 2)) / 2 for bar in bars]
    return derive("preferred", Term(sum(chances) / len(chances)), [score])
