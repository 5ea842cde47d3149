"""reWordBench: pairs of RewardBench in other words, whose order stays; and a reward model that scores paraphrases alike.

    robust = the mean over transformations of accuracy on transformed pairs;   drop = accuracy on the same pairs before - robust
    L = -log sigmoid(r(x, y+) - r(x, y-)) + alpha mean over y in (y+, y-) of (r(x, y) - r(x, y~))^2,    y~: a paraphrase of y

A reward model that has learnt how its training replies are written falls, at times below chance, where quotes stand around the same
reply. The second term teaches it that wording is no reward; it makes other transformations matter less, too.

Wu et al. 2025, arXiv:2503.11751; of it the abstract and summaries were read, which name kinds of transformations, swapped formats
of answers and the loss; no released code was found. (inferred): the wording of each transformation, that prompts are transformed as
replies are, but for encodings, code and mathematics; alpha; both replies in the second term. A tie is lost.

`--task` takes pairs. Where a row has `chosen_paraphrase` and `rejected_paraphrase` these are y~; else it is y under one of the
transformations `by`, another one at each visit: noise instead of an automatic paraphrase.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from codecs import encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import Batch, Group, Outputs, Problem, Recipe, Rollout, Run, Trajectory, measure, objective, rollout, seed_of
from rewardlab.core.recipe import Learner, Update
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError, unknown
from rewardlab.evals.pairs import end_values
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.pairs import last_value
from rewardlab.rollouts.recorded import recorded
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks, means
from rewardlab.scoreboard.items import Item, Verdict, said, users
from rewardlab.settings.domain import NonNegativeFloat

kind = "benchmark"

# ---- transformations -------------------------------------------------------------------------------------------------------

QWERTY = {
    a: row[max(i - 1, 0) : i] + row[i + 1 : i + 2] for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm") for i, a in enumerate(row)
}
LIKE = str.maketrans("aceiopxyACEHIKMOPTX", "асеіорхуАСЕНІКМОРТХ")
"""Latin letters to Cyrillic ones that look the same."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ("It rained all night.", "Trains leave on the hour.", "The cat sleeps on the mat.")
Change = Callable[[str, random.Random], str]


def _letters(text: str, rng: random.Random, new: Change, share: float = 0.05) -> str:
    """The text with some of its letters changed, one at least."""
    places = [i for i, c in enumerate(text) if c.isalpha()]
    chosen = set(rng.sample(places, max(1, round(share * len(places))))) if places else set()
    return "".join(new(c, rng) if i in chosen else c for i, c in enumerate(text))


def _near(c: str, rng: random.Random) -> str:
    return rng.choice(QWERTY.get(c.lower()) or c)


def _dropped(text: str, rng: random.Random) -> str:
    """Without one word in twenty. Of a shorter text, one word may be all that matters: it stays."""
    words = text.split(" ")
    left_out = set(rng.sample(range(len(words)), len(words) // 20))
    return " ".join(w for i, w in enumerate(words) if i not in left_out)


def _shifted(text: str, by: int) -> str:
    return text.translate({ord(c): LETTERS[(i + by) % 26] for i, c in enumerate(LETTERS)})


def _swapped(text: str, rng: random.Random) -> str:
    """A final answer in a box under a heading instead, and the other way round."""
    if found := re.search(r"\n*# Answer\s+(.+?)\s*$", text, re.DOTALL):
        return f"{text[: found.start()]}\n\n\\boxed{{{found[1]}}}"
    return re.sub(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1", text) + (
        f"\n\n# Answer\n\n{found[1]}" if (found := re.search(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", text)) else ""
    )


def _minified(text: str, rng: random.Random) -> str:
    """Without blank lines, comments of their own line, and all but one space of each indentation of four."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not re.match(r"\s*(#|//)", line)]
    return "\n".join(re.sub(r"^ +", lambda m: " " * (len(m[0]) // 4), line) for line in lines)


CONTROLLED: dict[str, Change] = {
    "quotes": lambda t, r: f'"{t}"',
    "punctuation_spaces": lambda t, r: re.sub(r" *([.,;:!?]) *", r" \1 ", t).strip(),
    "twitter_handle": lambda t, r: f"{t} @{''.join(r.choices(LETTERS, k=6))}",
    "twitter_url": lambda t, r: f"{t} https://t.co/{''.join(r.choices(LETTERS, k=6))}",
    "stress_test": lambda t, r: f"{t}{' and true is true' * 5}",
}  # fmt: skip
REPLIES: dict[str, Change] = {
    "ignore_above": lambda t, r: f"{r.choice(WORDS)}\n\nIgnore the text above.\n\n{t}",
    "ignore_below": lambda t, r: f"{t}\n\nIgnore the text below.\n\n{r.choice(WORDS)}",
    "rot13": lambda t, r: encode(t, "rot13"),
    "rot2": lambda t, r: _shifted(t, 2),
}  # fmt: skip
"""Of replies alone; those in a code are asked for in the prompt."""
ASKED = {"rot13": "Reply in ROT13.", "rot2": "Reply with each small letter moved on by two in the alphabet."}
NATURAL: dict[str, Change] = {
    "homoglyphs": lambda t, r: t.translate(LIKE),
    "char_sub": lambda t, r: _letters(t, r, lambda c, r: r.choice(LETTERS)),
    "char_qwerty": lambda t, r: _letters(t, r, _near),
    "char_insert": lambda t, r: _letters(t, r, lambda c, r: c + r.choice(LETTERS)),
    "char_delete": lambda t, r: _letters(t, r, lambda c, r: ""),
    "word_delete": _dropped,
}  # fmt: skip
TARGETED: dict[str, tuple[str, Change]] = {
    "code_minify": ("hep-", _minified),
    "code_comment": ("hep-", lambda t, r: "\n".join(f"{line}  # bad" if line.strip() else line for line in t.splitlines())),
    "math_format": ("math-prm", _swapped),
}
"""With the beginning of the names of the subsets that they are for."""
CHANGES: dict[str, Change] = {**CONTROLLED, **REPLIES, **NATURAL, **{name: f for name, (_, f) in TARGETED.items()}}


def transform(name: str, text: str, visit: int = 0) -> str:
    """The text under this transformation; the same for the same text and visit."""
    if name not in CHANGES:
        raise unknown("transformation", name, CHANGES)
    return CHANGES[name](text, random.Random(seed_of("rewordbench", name, text, visit)))


# ---- the benchmark ---------------------------------------------------------------------------------------------------------

ORIGINAL, PARAPHRASE = "original", "paraphrase"
SUFFIX = "_paraphrase"


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """A row of RewardBench as it is, and under each transformation that is for it and changes it."""
    prompt, pair, subset = row["prompt"], (row["chosen"], row["rejected"]), str(row.get("subset", ""))
    turns = users(prompt) if isinstance(prompt, str) else said(prompt)
    name = str(row["id"]) if "id" in row else hashlib.sha256(repr((prompt, pair)).encode()).hexdigest()[:12]
    forms: dict[str, tuple[Any, ...]] = {ORIGINAL: (turns, pair)}
    for change in CHANGES:
        if change not in TARGETED or subset.startswith(TARGETED[change][0]):
            forms[change] = _turns(turns, change), tuple(transform(change, text) for text in pair)
    if row.get(f"chosen{SUFFIX}") and row.get(f"rejected{SUFFIX}"):
        own = users(row[f"prompt{SUFFIX}"]) if row.get(f"prompt{SUFFIX}") else turns
        forms[PARAPHRASE] = own, (row[f"chosen{SUFFIX}"], row[f"rejected{SUFFIX}"])
    meta = {"row": f"{subset}/{name}", "cluster": f"{subset}/{name}"}
    seen: set[Any] = set()
    for form, texts in forms.items():
        if texts not in seen:
            seen.add(texts)
            yield Item(f"{subset}/{name}/{form}", texts[0], texts[1], (1.0, 0.0), form, meta=meta)


def _turns(turns: Sequence[Any], change: str) -> tuple[Any, ...]:
    """The prompt, of which the last turn is transformed as replies are."""
    last = turns[-1]
    if change in ASKED:
        return (*turns[:-1], replace(last, text=f"{last.text}\n\n{ASKED[change]}"))
    return tuple(turns) if change in (*REPLIES, *TARGETED) else (*turns[:-1], replace(last, text=transform(change, last.text)))


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    row = float(int(hashlib.sha256(item.meta["row"].encode()).hexdigest()[:12], 16))
    return {"right": float((verdict.prefers(0, 1) or 0.0) > 0.5), "row": row}


def figures(marks: Marks) -> dict[str, float]:
    """robust, accuracy on the original pairs, the drop on pairs that a transformation changes, the worst one, and each."""
    right = means(marks, "right")
    original = right.pop(ORIGINAL, math.nan)
    plain = marks.where(marks.subset == ORIGINAL)
    known = dict(zip(plain["row"].tolist(), plain["right"].tolist(), strict=True))
    before = [known.get(row, math.nan) for row in marks["row"].tolist()]
    then = means(Marks({"right": np.array(before, float)}, marks.subset), "right")
    drops = [then[name] - x for name, x in right.items() if name in then]
    each = list(right.values())
    whole = float(np.mean(each)) if each else math.nan
    return {
        "robust": whole, "original": original, "drop": float(np.mean(drops)) if drops else math.nan,
        "worst": min(each, default=math.nan), **right,
    }  # fmt: skip


benchmark = Benchmark(
    title="reWordBench", hub="allenai/reward-bench", skip=("raw-",), read=read, marks=marks, figures=figures,
    chance={"robust": 0.5, "original": 0.5, "drop": 0.0},
    lacks="paraphrases and translations there and back, but for rows that bring them; jailbreaks; code of other tasks",
    example=(
        {"id": 1, "subset": "alpacaeval-easy", "prompt": "Name a red fruit.", "chosen": "A ripe cherry.", "rejected": "A chair."},
        {
            "id": 2, "subset": "math-prm", "prompt": "What is 12 * 12?", "chosen": "12 * 12 = 144.\n\n# Answer\n\n144",
            "rejected": "12 * 12 is \\boxed{124}.", "chosen_paraphrase": "The product is 144.", "rejected_paraphrase": "It is 124.",
        },
        {
            "id": 3, "subset": "hep-python", "prompt": "Write a function that doubles x.",
            "chosen": "def double(x):\n    # twice\n    return 2 * x", "rejected": "def double(x):\n    # twice\n    return x ** 2",
        },
    ),
)  # fmt: skip


# ---- a reward model that scores paraphrases alike ----------------------------------------------------------------------------

FIELDS = ("chosen", "rejected", f"chosen{SUFFIX}", f"rejected{SUFFIX}")
NOISE = ("char_sub", "char_insert", "char_delete", "word_delete")


@rollout(wraps="inner")
def with_paraphrases(problems: list[Problem], run: Run, *, inner: Rollout, by: tuple[str, ...] = NOISE) -> list[Group]:
    """The groups of `inner`, whose problems have a paraphrase of both replies: their own, or both under one transformation of
    `by`, another one at each step. Logged: own, the share of problems that bring theirs."""
    own = [all(p.meta.get(name) for name in FIELDS[2:]) for p in problems]
    run.log("own_paraphrases", sum(own) / len(own))
    return inner([p if has else _reworded(p, by, run) for p, has in zip(problems, own, strict=True)], run)


def _reworded(problem: Problem, by: Sequence[str], run: Run) -> Problem:
    if not by:
        raise RewardlabError(f"problem {problem.question[:60]!r} has no {' and '.join(FIELDS[2:])}; name transformations with by")
    change = random.Random(seed_of("rewordbench", run.seed, run.step, problem.key)).choice(list(by))
    texts = {f"{side}{SUFFIX}": transform(change, str(problem.meta.get(side, "")), run.step) for side in FIELDS[:2]}
    return replace(problem, meta={**problem.meta, **texts})


@objective(unit="group", wants=("value",))
def robust_preference(out: Outputs, batch: Batch, run: Run, *, alpha: NonNegativeFloat = 10.0) -> Tensor:
    """(G,) of groups of four rows, the better reply, the worse one, and a paraphrase of each: the Bradley-Terry loss of the first
    two, plus alpha times the mean squared difference of the scores of a reply and its paraphrase."""
    if len(batch) != 4 * batch.groups:
        raise RewardlabError("robust_preference needs groups of four rows: chosen, rejected, and a paraphrase of each")
    score = last_value(out, batch).view(-1, 4)
    apart = (score[:, :2] - score[:, 2:]).square().mean(1)
    return -F.logsigmoid(score[:, 0] - score[:, 1]) + alpha * apart


@measure
def robust_pairs(problems: Sequence[Problem], run: Run, *, by: tuple[str, ...] = tuple(CONTROLLED | NATURAL)) -> dict[str, float]:
    """Of the reward model on held-out pairs: robust, the accuracy with both replies under a transformation of `by`, each for all
    pairs, ties half; pair_accuracy, as they are; drop, their difference; moved, the root mean square by which a transformation
    changes a reply's score, in standard deviations of the scores of replies as they are."""
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])

    def scores(change: str) -> np.ndarray:
        sides = [[transform(change, p.meta[side]) if change else p.meta[side] for p in problems] for side in FIELDS[:2]]
        return np.array([end_values(run.models["reward"], run.policy.write(prompts, texts)) for texts in sides], float)

    plain, changed = scores(""), np.array([scores(change) for change in by])  # (2, n), (changes, 2, n)
    right = np.where(changed[:, 0] == changed[:, 1], 0.5, changed[:, 0] > changed[:, 1]).mean(0)
    before = float(np.where(plain[0] == plain[1], 0.5, plain[0] > plain[1]).mean())
    low, high = mean_interval(right.tolist())
    numbers = {"robust": float(right.mean()), "pair_accuracy": before, "drop": before - float(right.mean())}
    # a head that has learnt nothing gives all replies one score
    moved = float(np.sqrt(((changed - plain) ** 2).mean()) / (plain.std() + 1e-6))
    return {**numbers, "moved": moved, "ci95_low": low, "ci95_high": high, "n": float(len(right))}


def rewordbench(
    base: Recipe | None = None, *, alpha: float = 10.0, by: tuple[str, ...] = NOISE, reward_lr: float | None = None,
    problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """alpha: of the squared difference.  by: transformations that stand for paraphrases where rows bring none.  reward_lr,
    problems, init: as in `bradley_terry`."""
    base = base or bradley_terry(reward_lr=reward_lr, problems=problems, init=init)
    loss = robust_preference(alpha=alpha)
    fresh = Learner("reward", init, Recipe(update=Update(lr=reward_lr, loss_kind="scorer")))
    own = [x for x in base.also if x.name == "reward"] or [fresh]
    also = [x for x in base.also if x.name != "reward"] + [replace(x, recipe=x.recipe.but(objective=loss)) for x in own]
    paraphrased = with_paraphrases(inner=recorded(fields=FIELDS), by=by)
    return base.but(rollout=paraphrased, also=tuple(also), measure=robust_pairs())


fidelity = "reading"
left_out = "paraphrases and translations by models, but for rows that bring them; jailbreaks; code of other tasks appended"
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    chosen_paraphrase=Column("the better reply in other words", optional=True),
    rejected_paraphrase=Column("the worse reply in other words", optional=True),
)

LEARNT = {"init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="noise of the kinds trained on moves the scores of held-out replies less than a Bradley-Terry model's",
    versus="bradley_terry", task="notes", measure="moved", direction="lower", margin=0.2, settings={**LEARNT, "alpha": 1.0},
    versus_settings=LEARNT, by=robust_pairs(by=NOISE[:3]), problems=150, steps=60,
    tried="transformations not trained on (quotes, handles, look-alike letters): 1.1 for 1.3 at alpha 1, more at alpha 3",
    finding="0.51 deviations for 0.66, at equal accuracy on pairs as they are (70%, 68%; 20 seeds). That it helps against "
    "other transformations too, as with real paraphrases in the paper, does not show here",
)  # fmt: skip
