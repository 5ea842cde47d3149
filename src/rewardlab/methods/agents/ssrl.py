"""SSRL: the policy is its own search engine: it writes queries and what they find in one reply, and learns all but what they find.

    <think>..</think> <search>query</search> <information>what the policy knows</information> <think>..</think> <answer>..</answer>
    R = (1 - l) right + l form,    l = .1;    GRPO;    tokens between <information> and </information> are in no loss

A model that was trained on the web can say much of what a search would find, at no cost. What it says there is not rewarded for
itself: as with a real engine the policy learns to ask and to use results, not to write those that happened to go with a right
answer. So a real search engine can take the place of the information afterwards (`real=True`), in the same form.

Fan et al. 2025, arXiv:2508.10874, and its code (YuchenFan48/SSRL, 0da1569: naive.py for weights and form, dp_actor.py and
ray_trainer.py for the mask, which is that of loss, KL and advantages; TsinghuaC3I/SSRL, 5929f11, example.sh: GRPO, 5 replies, KL
.001, the mask switched on). form is 0 unless the reply begins with a thought and ends with the answer, has no other tags, no empty
one, a line at most a query, and after each query its information; then min(thoughts / 2, 1), times the smaller over the larger of
thoughts and searches + 1. `right` is exact match there, here the task's verifier. Ours: the two tags of the information are learnt,
since the policy has to write them, and information of several lines, or cut off, is masked too; the released pattern takes out the
tags as well, and finds information of one line alone. `masked=False` learns the information too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Group, Message, Problem, Recipe, Rollout, Run, Trajectory, Turn, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.rollouts.recorded import recorded

TOLD = (
    "Think between <think> and </think>. Whenever you lack some knowledge, write a query between <search> and </search>, and then, "
    "as the search engine, what would be found between <information> and </information>, from what you know; think again after it. "
    "Search as often as you need to. At the end write the answer between <answer> and </answer>."
)
_INFORMATION = re.compile(r"<information>(.*?)(?:</information>|\Z)", re.DOTALL)
_TAG = re.compile(r"<(/?(?:think|search|information|answer))>")
_PLACEHOLDERS = {"search": "your query", "think": "your thoughts", "answer": "your answer", "information": "your information"}
MOST = 8
"""Thoughts of a reply, beyond which its form counts nothing."""

# ---- what the policy wrote as a search engine is read, and not decided --------------------------------------------------------


@rollout(wraps="inner")
def self_searched(problems: list[Problem], run: Run, *, inner: Rollout, tell: str = TOLD, masked: bool = True) -> list[Group]:
    """The replies of `inner`, in which what stands between <information> and </information> counts as text that was only read.

    tell: a message after the prompt, which says how to write.  masked: without it the information is decided as all else is.
    """
    told = [replace(p, prompt=(*p.prompt, Message("user", tell))) for p in problems] if tell else problems
    groups = inner(told, run)
    return [[without_information(t, run) for t in group] for group in groups] if masked else groups


def without_information(t: Trajectory, run: Run) -> Trajectory:
    """The same tokens; those of the information, between its tags, have no author. One that reaches over a tag keeps its own."""
    turns: list[Turn] = []
    for turn in t.turns:
        turns += [turn] if turn.author is None else _parts(turn, run)
    return replace(t, turns=tuple(turns))


def _parts(turn: Turn, run: Run) -> Iterator[Turn]:
    pieces = run.policy.pieces(turn.ids)
    spans = [found.span(1) for found in _INFORMATION.finditer("".join(pieces))]
    starts = list(accumulate(map(len, pieces), initial=0))
    inside = [
        bool(piece) and any(low <= at and at + len(piece) <= high for low, high in spans)
        for at, piece in zip(starts, pieces, strict=False)
    ]
    place = 0
    for found, part in groupby(inside):
        n = len(list(part))
        here = slice(place, place + n)
        logprobs, sampled = (None if x is None or found else x[here] for x in (turn.logprobs, turn.sampled))
        yield replace(
            turn, author=None if found else turn.author, ids=turn.ids[here], text=run.policy.decode(turn.ids[here]),
            logprobs=logprobs, sampled=sampled, tokens=None, reward=None,
        )  # fmt: skip
        place += n


def written(t: Trajectory) -> str:
    """All that the policy wrote of a reply, and what it read within it."""
    first = next((i for i, turn in enumerate(t.turns) if turn.author is not None), len(t.turns))
    return "".join(turn.text for turn in t.turns[first:])


# ---- the reward ---------------------------------------------------------------------------------------------------------------


def form_of(reply: str) -> float:
    """How well a reply keeps to the form of a self-search, from 0 to 1."""
    text = reply.strip()
    tags = _TAG.findall(text)
    # a thought that says a < b has the tag "< b </think>", which is none of them
    if len(tags) < 4 or not all(_TAG.fullmatch(tag) for tag in re.findall(r"<[^>]+>", text)):
        return 0.0
    if not (text.startswith("<think>") and text.endswith("</answer>") and tags[1] == "/think" and tags[-2] == "answer"):
        return 0.0
    for tag, placeholder in _PLACEHOLDERS.items():
        for content in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL):
            if not content.strip() or placeholder in content.lower() or (tag == "search" and "\n" in content):
                return 0.0
    searches = [i for i, tag in enumerate(tags) if tag == "search"]
    if any(tags[i + 1 : i + 4] != ["/search", "information", "/information"] for i in searches):
        return 0.0
    thoughts, asked = tags.count("think"), len(searches)
    if asked != tags.count("information") or thoughts > MOST:
        return 0.0
    return min(thoughts / 2, 1.0) * min(thoughts, asked + 1) / max(thoughts, asked + 1)


@reward
def self_search_form(trajectory: Trajectory) -> float:
    """How well the whole reply keeps to the form, from 0 to 1.  Fan et al. 2025, arXiv:2508.10874"""
    return form_of(written(trajectory))


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


@measure
def sim_to_real(problems: Sequence[Problem], run: Run, *, own: Rollout, real: Rollout) -> dict[str, float]:
    """pass@1 where the policy is its own search engine, with its interval; real: where a search engine answers its queries."""
    return {
        **episode_accuracy(rollout=own)(problems, run),
        "real": episode_accuracy(rollout=real)(problems, run)["pass@1"],
    }


@measure
def information_learnt(problems: Sequence[Problem], run: Run, *, plain: Rollout, own: Rollout) -> dict[str, float]:
    """The share of learnt tokens that stand between the tags of information: by `own`, and by `plain`, which masks nothing."""
    shares = {}
    for name, sampler in (("plain", plain), ("own", own)):
        inside, learnt = 0, 0
        for t in (t for group in sampler(list(problems), run) for t in group):
            hidden = ~without_information(t, run).mask[t.mask]
            inside, learnt = inside + int(hidden.sum()), learnt + int(np.sum(t.mask))
        shares[name] = inside / max(1, learnt)
    return {**shares, "n": float(len(problems))}


def ssrl(
    base: Recipe | None = None, *, n: int | None = None, temperature: float | None = None, form: float = 0.1, masked: bool = True,
    real: bool = False, env: Environment | None = None, corpus: str = "", turns: int | None = None, beta: float = 0.001,
) -> Recipe:  # fmt: skip
    """n, temperature: of replies; None: the base's, or else 5 and 1.  form: weight of the form, l.  masked: the information is not
    learnt.  corpus, env: a search engine that answers in the place of the policy in a second measure, and with real=True in the
    rollouts too, in `turns` replies at most, None: 5; real=True without one searches the documents of each row.  beta: weight of
    the KL.
    """
    base = base or grpo(n=n or 5, beta=beta)
    right: Any = base.reward or correct()
    said = {key: x for key, x in (("n", n), ("temperature", temperature)) if x is not None}
    sampled = base.required("rollout").but_innermost(**said)
    hot = {"temperature": sampled.innermost.settings["temperature"]}
    # within a filter of the base: what it samples anew is told and masked too
    own = [self_searched(inner=inner, masked=masked) for inner in (sampled.innermost, sampled.innermost.but(n=1))]
    paid = base.but(reward=(1 - form) * right + form * self_search_form() if form else right)
    if not (real or corpus or env):
        return paid.but(rollout=sampled.with_innermost(own[0]), measure=episode_accuracy(rollout=own[1]))
    play: dict[str, Any] = {"env": tools(env, corpus), "turns": turns or 5}
    answered = episode_accuracy(rollout=interactive(n=1, **play, **hot))
    if real:
        return paid.but(rollout=in_place_of_replies(sampled, **play), measure=answered)
    return paid.but(rollout=sampled.with_innermost(own[0]), measure=sim_to_real(own=own[1], real=interactive(n=1, **play, **hot)))


fidelity = "core"
left_out = (
    "the F1 of the answer, which its code logs; entropy-guided searches at test time, where a real search takes the place of "
    "the least certain ones; and unsupervised training on the majority's answer"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "In which city was the composer of Fidelio born?", "answer": "Bonn"},
        {"prompt": "What is the capital of the country where Nokia was founded?", "answer": "Helsinki"},
        {"prompt": "Who directed the film Psycho?", "answer": "Alfred Hitchcock"},
    ],
)

REPLIES = recorded(fields=("recalled",))
# by construction: the mask takes out just what is counted
check = Check(
    says="of the tokens that are learnt none is one that the policy wrote as its own search engine",
    versus=None, task="encyclopaedia:scripted=true,test_size=4000", measure="own", direction="lower", margin=0.1, against="plain",
    model="untrained", by=own_share(inner=information_learnt(plain=REPLIES, own=self_searched(inner=REPLIES, tell=""))),
    problems=4000, steps=1, fault=Within("plain", low=0.1, says="share of learnt tokens that are information, without the mask"),
    sanity=True, tried="two development seeds: -.20 and -.20, with a fault of at least .3 and a margin of .2, which were too high",
    finding="a fifth of the tokens of a reply of the form is information, and is left out. What a policy becomes is not tested",
)  # fmt: skip
baseline = "grpo"
