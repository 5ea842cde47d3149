"""APRIL: over-provision rollouts: a step ends when enough replies are complete, and the rest resume in the next.

    in progress: (1 + spare) N groups;   a step ends when N are complete;   the prefixes of the others are kept with the log-probs
    of the weights that wrote them, so that the importance ratio of the loss holds for every token:  ratio_t = pi / pi_old(t)

Zhou et al. 2025, arXiv:2509.18521 (scripts: RLsys-Foundation/APRIL, 284f17b). Stacks on any method that samples independent
replies and corrects by the ratio (GRPO, DAPO, GSPO ...). With spare = 1 twice as many groups are in progress as a step needs,
as in the scripts (--over-sampling-batch-size 64 for 32). Each step launches N groups, and the first one spare N more.
"""

from __future__ import annotations

from dataclasses import replace

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Problem, Recipe, Run, Sampling, Trajectory, rollout
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share

# ---- Replies that may take several training steps to write, so that a step does not wait for the longest -------------


@rollout(across_problems=True)
def partial(
    problems: list[Problem], run: Run, *, n: PositiveInt = 8, spare: Share = 1.0, temperature: NonNegativeFloat = 1.0
) -> list[Group]:
    """n replies to each problem, with more groups in progress than are returned.

    Of all groups in progress, `spare` * (number of problems) are left unfinished; complete groups are returned, the oldest first.
    The others wait in `run.memory`, with the log-probs of the weights that sampled them, and are continued at the next step. The
    first step takes so many further problems, so that each returns as many groups as it has problems (fewer at first, where a run
    has none to give), as do further calls within a step, by which a filter fills up its batch. No token is thrown away.

    Logs `busy`: tokens sampled / (rows * decoding steps), as if all rows were decoded in one batch.
    Zhou et al. 2025, arXiv:2509.18521
    """
    key = f"partial.{run.policy.name}"
    spared = round(spare * len(problems))
    further = run.more_problems(spared) if key not in run.memory and spared and run.more_problems else []
    prompts = run.policy.read([Trajectory(p) for p in [*problems, *further]], [p.prompt for p in [*problems, *further]])
    groups = [list(g) for g in run.memory.get(key, [])] + [[replace(t, path=(i,)) for i in range(n)] for t in prompts]
    # a further call in a step adds few problems: what its first call left in progress stays so
    again, run.memory[f"{key}.step"] = run.memory.get(f"{key}.step") == run.step, run.step
    wanted = len(problems) if again else max(1, len(groups) - spared)
    sampled = slots = 0
    # more than one call, because open rows differ in how much they may still write
    while missing := _missing(groups, wanted):
        tokens, available = _continue(groups, missing, temperature, run)
        sampled, slots = sampled + tokens, slots + available
    run.log("busy", sampled / max(1, slots))
    complete = [g for g in groups if not any(map(_open, g))]
    returned = complete[:wanted]
    # `is`, because == would compare the rows one by one; complete groups beyond `wanted` wait too
    run.memory[key] = [g for g in groups if not any(g is r for r in returned)]
    run.log("carried", sum(_open(t) for g in run.memory[key] for t in g))
    return returned


def _open(t: Trajectory) -> bool:
    return t.stop is None


def _missing(groups: list[Group], wanted: int) -> int:
    """The least number of rows that must still finish for `wanted` groups to be complete."""
    # the groups with the fewest open rows are the cheapest to complete
    return sum(sorted(sum(map(_open, g)) for g in groups)[:wanted])


def _continue(groups: list[Group], enough: int, temperature: float, run: Run) -> tuple[int, int]:
    """Extend all open rows until `enough` of them finish or the longest reaches its limit.

    Returns the number of tokens sampled, and the number that would have been sampled had no row waited for another.
    """
    places = [(g, i) for g, group in enumerate(groups) for i, t in enumerate(group) if _open(t)]
    rows = [groups[g][i] for g, i in places]
    # one limit for all rows of the call, so that none exceeds max_new
    room = min(run.max_new - written(t) for t in rows)
    sampling = Sampling(room, temperature, enough=enough)
    # `enough`: the call returns as soon as the groups that are nearest to completion are complete
    extended = [_still_open(t, run.max_new) for t in run.policy.extend(rows, sampling, run.rng("rollout"))]
    new = [len(after) - len(before) for before, after in zip(rows, extended, strict=True)]
    for (g, i), before, after, count in zip(places, rows, extended, new, strict=True):
        # a row that got no token in this call stays as it was
        groups[g][i] = after if count else before
    return sum(new), len(rows) * max(new)


def _still_open(t: Trajectory, longest: int) -> Trajectory:
    """Reopen a row that stopped at the limit of this call, unless its reply has all `longest` tokens."""
    return replace(t, stop=None) if t.stop == "length" and written(t) < longest else t


def written(t: Trajectory) -> int:
    """Tokens of the last reply, over all training steps in which it was sampled."""
    count = 0
    for turn in reversed(t.turns):
        if turn.author is None:
            break
        count += len(turn.ids)
    return count


# ---- the recipe ---------------------------------------------------------------------------------------------------------

kind = "infrastructure"


def april(base: Recipe | None = None, *, spare: float = 1.0) -> Recipe:
    """spare: extra groups in progress, as a share of the groups of a step; 0 waits for the longest reply."""
    base = base or grpo()
    # innermost: a base's filter stays around the rollout, and sees complete groups only
    return base.but(rollout=base.required("rollout").replace_innermost(independent, partial, spare=spare))


fidelity = "whole"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A ticket costs 7. What do 6 tickets cost?", "answer": "42"},
        {"prompt": "What is 100 minus 37?", "answer": "63"},
        {"prompt": "Find $x$: $3x = 27$.", "answer": "9"},
    ],
)

check = Check(
    says="fewer slots stand idle behind the longest replies",
    versus="april", task="euclid", measure="train.busy", direction="higher", margin=0.1, settings={"spare": 0.5},
    versus_settings={"spare": 0.0}, steps=20, learns=None, sanity=True,
    finding="78% of the decoding slots are busy, and 45% where a step waits for its longest reply; accuracy is much the same (73% "
    "and 70%). Seconds on a real server are not measured",
    version=2, replaces="it holds by construction, which was not said; tokens were the budget",
)  # fmt: skip
