"""Self-improving pretraining: DPO on a judge's preference between the corpus's continuation, a rewrite and the policy's own.

    candidates of a prefix x: the original suffix, a rewrite of it by a strong model, and y_1 .. y_K ~ pi(. | x)
    w, l = those of the highest and the lowest reward;    loss = -log sigmoid(beta [log pi/ref(w) - log pi/ref(l)])    (online DPO)
    or loss = -mean over tokens of log pi(w)                                                                          (RF-NLL)

Next-token prediction teaches whatever the corpus says, unsafe and false things too. Here the policy still meets such prefixes, and
learns to continue them better: at first as the corpus and the rewrites do, later as the best of its own rollouts, which win the
more often the better it has become (logged as won/rollout beside won/COLUMN, in shares of the groups).

Tan et al. 2026, arXiv:2601.21343. Candidates, both losses, highest against lowest score, and K = 16 at temperature 1 are those
of the paper; beta is (inferred), and so is that nothing is learnt where all scores are equal. The paper's quality, judged in
pairs, is a reward over groups.

The judge is a model (`judge`), --reward FILE.py:function, a reward model, or the verifier. --max-new is the length of a suffix, in
the paper 128 tokens of raw text (`raw=True`).
"""

from collections import Counter
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.clients.endpoint import is_served
from rewardlab.core import (
    Group,
    Learner,
    Problem,
    Recipe,
    Run,
    Sampling,
    Score,
    Scores,
    Trajectory,
    Turn,
    Update,
    loop,
    rollout,
)
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.rewards import mean_reward
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import preferred_mean
from rewardlab.rewards.judge import judge as judged
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.with_demonstrations import with_demonstrations
from rewardlab.settings.domain import PositiveFloat, PositiveInt

JUDGE = "judge"


@rollout(rows=lambda n, fields: n + len(fields))
def windows(problems: list[Problem], run: Run, *, n: PositiveInt = 16, fields: tuple[str, ...] = ()) -> list[Group]:
    """The texts in these columns and n samples, as what follows a prompt in one text: without a template or a break between the
    two, and without an end. Of a column so many tokens are read as a sample may have.
    """
    policy = run.policy
    begun = [
        Trajectory(p).plus(Turn(None, ids, text=p.question))
        for p, ids in zip(problems, _ids(run, [p.question for p in problems], True), strict=True)
    ]
    for t in begun:
        policy.check_fits(t, run.max_new)
    rows = policy.extend([replace(t, path=(i,)) for t in begun for i in range(n)], Sampling(run.max_new), run.rng("rollout"))
    groups: list[Group] = [[] for _ in begun]
    for field in fields:
        for p in problems:
            p.required(field, by="self_improving_pretraining")
        for group, t, ids in zip(groups, begun, _ids(run, [p.meta[field] for p in problems], False), strict=True):
            ids = ids[: run.max_new]
            group.append(replace(t.plus(Turn(policy.name, ids, text=policy.decode(ids)), "length"), tag=field))
    return [[*group, *rows[i * n : (i + 1) * n]] for i, group in enumerate(groups)]


def _ids(run: Run, texts: list[str], begins: bool) -> list[np.ndarray]:
    """The tokens of texts; with the token that begins one, if there is such."""
    encoded = run.policy.tokenizer(texts, add_special_tokens=begins, verbose=False)["input_ids"]
    return [np.asarray(ids, np.int64) for ids in encoded]


@loop
def best_against_worst(recipe: Recipe, run: Run, ops: Any) -> None:
    """Judge all candidates, and learn from a pair of each group: the best, then the worst."""
    groups = ops.rollout(ops.problems())
    scores = ops.score(groups)
    pairs, paid = extremes(groups, scores)
    sources = {t.tag or "rollout" for group in groups for t in group}
    won = Counter(pair[0].tag or "rollout" for pair in pairs)
    for source in sorted(sources):
        run.log(f"won/{source}", won[source] / len(groups))
    if pairs:
        ops.update(ops.collate(pairs, paid))


def extremes(groups: list[Group], scores: Scores) -> tuple[list[Group], Scores]:
    """The best and the worst row of each group, with their scores; the first of equals. Groups in which all are equal are left out.

    Rows without a verdict are neither.
    """
    pairs: list[Group] = []
    paid: list[list[Score]] = []
    for group, row in zip(groups, scores, strict=True):
        judged = [(s.total, i) for i, s in enumerate(row) if s.total is not None]
        if not judged:
            continue
        best, worst = max(judged, key=lambda x: (x[0], -x[1])), min(judged)
        if best[0] > worst[0]:
            pairs.append([group[best[1]], group[worst[1]]])
            paid.append([row[best[1]], row[worst[1]]])
    return pairs, paid


def self_improving_pretraining(
    base: Recipe | None = None, *, original: str = "solution", rewrite: str = "", n: int = 16, beta: PositiveFloat = 0.1,
    loss: Literal["dpo", "nll"] = "dpo", lr: float | None = None, problems: int = 32, judge: str = "",
    raw: bool = False,
) -> Recipe:  # fmt: skip
    """original, rewrite: columns of suffixes, "" for none.  n: rollouts, K.  loss: dpo, or nll: of the best candidate alone.
    raw: prefix and suffix are one text, as in the paper, for a base model; else a prompt, and a reply that ends.
    judge: openai:URL#NAME or a model, which says how good a suffix is; without one the reward is the base's, or the verifier's.
    """
    base = base or Recipe(name="self_improving_pretraining", reward=correct(), measure=mean_reward(), update=Update())
    if base.loop or base.also:
        raise RewardlabError(f"self_improving_pretraining has a loop of its own, and {base.name or 'this base'} has another")
    sampled, fields = independent(n=n), tuple(filter(None, (original, rewrite)))
    alone = windows(n=1) if raw else independent(n=1)
    if judge:
        paid = judged(model=judge if is_served(judge) else JUDGE)
        also = () if is_served(judge) else (Learner(JUDGE, judge, Recipe(), every=0),)
        base = base.but(reward=paid, also=also, measure=own_reward(reward=paid, rollout=alone))
    elif raw:
        base = base.but(measure=own_reward(reward=base.required("reward"), rollout=alone))
    candidates = with_demonstrations(inner=sampled, fields=fields) if fields else sampled
    return base.but(
        rollout=windows(n=n, fields=fields) if raw else candidates,
        credit=None,
        objective=dpo_loss(beta=beta) if loss == "dpo" else imitate(),
        weighting=None if loss == "dpo" else preferred_mean(),
        loop=best_against_worst(),
        lr=lr,
        loss_kind="preference" if loss == "dpo" else "imitation",
        small_lr=3e-4,
        problems=problems,
    )


fidelity = "core"
left_out = (
    "training the judge and the rewriter, and beginning without rollouts; a judge is any reward, and without one the verifier; "
    "and, unless raw=True, windows of raw text: a prefix is read as a prompt, by the chat template or with a line break after it, "
    "and a suffix of the corpus and a rewrite end with the end of a reply"
)
data = Data(
    prompt="a prefix, as it stands in the corpus",
    solution=Column("what followed it in the corpus", setting="fields[0]"),
    rewrite=Column("a better version of that, by a strong model (rewrite=rewrite)", optional=True, setting="rewrite"),
    answer=Column("what the verifier looks for in a continuation, where no judge is given", optional=True),
    rows=[
        {
            "prompt": "Water boils at sea level at",
            "solution": " 90 degrees, they say.\nAnswer: 90",
            "rewrite": " 100 degrees Celsius.\nAnswer: 100",
            "answer": "100",
        },
        {
            "prompt": "The capital of Italy is",
            "solution": " Rome, a city on the Tiber.\nAnswer: Rome",
            "rewrite": " Rome.\nAnswer: Rome",
            "answer": "Rome",
        },
        {"prompt": "A week has this many days:", "solution": " seven.\nAnswer: 7", "rewrite": " 7.\nAnswer: 7", "answer": "7"},
    ],
)

CORPUS = {"original": "rejected", "rewrite": "chosen", "n": 8}
claim = Claim(
    says="judged continuations teach better ones than next-token prediction on the same corpus in equal updates",
    versus="sft", task="notes", measure="reward", direction="higher", margin=0.24, settings=CORPUS,
    versus_settings={"field": "rejected", "lr": 3e-4, "problems": 32}, by=mean_reward(), steps=40,
    fault=Within("reward", high=0.55, says="quality of what is learnt from a corpus of careless notes"), learns=None,
    sanity=True,
    finding="continuations are worth .93 after learning from the judge and .45 after SFT on the careless corpus (.54 before). It "
    "reads the judge that it is measured by, so this shows that the loop works, no more",
)  # fmt: skip
