"""DCS: what a model believes in a multiple choice with "I don't know": mass on IDK is neutral, mass on a wrong option is not.

    DCS = (l_c p_c - l_w p_w) (1 - p_idk),   l_c >= l_w >= 0, both 1 unless said;   from -l_w to l_c, averaged over questions

p_c, p_w and p_idk are the chances of the right options, of all wrong ones and of IDK, which add up to 1. A model that hedges
between the right option and IDK scores above one that hedges between the right and a wrong one; accuracy, confidence-weighted
accuracy and the Brier score are the same for both.

Burns 2025, arXiv:2510.04302, and the author's code (Aleph-Alpha-Research/eval-framework, metrics/loglikelihood/dcs.py, base.py,
ternary.py, and MMLU_IDK in tasks/benchmarks/mmlu.py, whose instruction is put in our words; IDK is said by "?"). There, a
log-likelihood is divided by the characters of the option: `likelihood:MODEL?norm=characters&end=no`; `norm=sum` is the chance
itself. Questions here are rows of MMLU, without examples before them, as a chat.

How scores are read: by softmax, as there; as they are (inferred) of a rater whose scores are numbers from 0 that add up to 1 on
every question that it answers; of one that compares (inferred), all mass lies on what wins most. A question without a verdict
counts as a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.choices import points
from rewardlab.scoreboard.figures import Marks, by_subset
from rewardlab.scoreboard.items import Item, Verdict, users

kind = "benchmark"
IDK = "?"
LETTERS = "ABCDEFGHIJ"
ASK = (
    "This is a multiple choice question about {subject}. Answer by the letter of an option if you are confident: a right answer "
    "earns a point, and a wrong one may cost one. If you are not sure, answer ?, which earns nothing and costs nothing.\n\n"
    "{question}\n{options}\nAnswer:"
)
FIGURES = ("accuracy", "ternary", "confidence_weighted", "brier", "abstains", "p_right", "p_wrong", "p_idk")


def dcs(right: Any, wrong: Any, idk: Any, reward: float = 1.0, penalty: float = 1.0) -> Any:
    """Of chances that add up to 1: numbers, or arrays of one shape. Raises ValueError unless reward >= penalty >= 0."""
    if not reward >= penalty >= 0:
        raise ValueError(f"a right answer earns at least what a wrong one costs, and that is 0 or more: {reward}, {penalty}")
    return (reward * right - penalty * wrong) * (1.0 - idk)


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """The letters of the options, and "?": worth 1 for the right one, -1 for a wrong one, 0 for IDK."""
    options, right = [str(x) for x in row["choices"]], row["answer"]
    place = LETTERS.index(right) if isinstance(right, str) and len(right) == 1 and right in LETTERS else int(right)
    if not 2 <= len(options) <= len(LETTERS) or not 0 <= place < len(options):
        raise ValueError(f"answer is the place of one of the choices, of which there are 2 to {len(LETTERS)}")
    subject = str(row.get("subject") or row.get("type") or "")
    question = str(row["question"]).strip()
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
    worth = (*(1.0 if k == place else -1.0 for k in range(len(options))), 0.0)
    prompt = ASK.format(subject=subject.replace("_", " ") or "anything", question=question, options=listed)
    yield Item(f"{subject}/{question}/{'/'.join(options)}", users(prompt), (*LETTERS[: len(options)], IDK), worth, subject)


CHANCES = "chances "
"""Begins the columns of marks that read scores as chances: whether all of a rater's are is known when all are seen."""


def belief(scores: np.ndarray) -> np.ndarray:
    """The chances (n,) of the options and of IDK, by softmax."""
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def are_chances(scores: np.ndarray) -> bool:
    return bool((scores >= 0).all() and abs(scores.sum() - 1) < 1e-3)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """The figures of a question, by softmax; and read as chances, where they may be some."""
    scores = points(item, verdict)
    if not np.isfinite(scores).all():
        silent = dict.fromkeys((*FIGURES, "dcs"), 0.0) | {"dcs": -1.0, "ternary": -1.0, "p_wrong": 1.0, "brier": 2.0}
        return silent | {CHANCES + name: x for name, x in silent.items()}
    if verdict.orders:
        best = scores == scores.max()
        found = _believed(item, best / best.sum())
        return found | {CHANCES + name: x for name, x in found.items()}
    found = _believed(item, belief(scores))
    read_so = _believed(item, scores / scores.sum()) if are_chances(scores) else {}
    return found | {CHANCES + name: x for name, x in read_so.items()}


def _believed(item: Item, p: np.ndarray) -> dict[str, float]:
    worth = np.array(item.worth)
    right, wrong, idk = (float(p[worth == w].sum()) for w in (1.0, -1.0, 0.0))
    said = worth[int(p.argmax())]
    found = {"dcs": dcs(right, wrong, idk), "accuracy": said == 1, "ternary": said, "confidence_weighted": p.max() * (said == 1)}
    found |= {"brier": ((p - (worth == 1)) ** 2).sum(), "abstains": said == 0, "p_right": right, "p_wrong": wrong, "p_idk": idk}
    return {name: float(x) for name, x in found.items()}


def figures(marks: Marks) -> dict[str, float]:
    """dcs and the others over all questions; then dcs by subject."""
    by = "" if np.isnan(marks[f"{CHANCES}dcs"]).any() else CHANCES
    subjects = by_subset(marks, f"{by}dcs")
    whole = {"dcs": subjects.pop("overall"), **{name: marks.mean(by + name) for name in FIGURES}}
    return whole | {f"dcs {subject}": x for subject, x in subjects.items()}


benchmark = Benchmark(
    title="Distributional correctness (MMLU with I don't know)", data="qwen_math_rm/mmlu_stem*", hub="cais/mmlu", read=read,
    marks=marks, figures=figures, chance={"accuracy": 0.2}, lacks="all of MMLU but its mathematics and natural sciences",
    example=(
        {"question": "What is 2 + 2?", "choices": ["3", "4", "5", "22"], "answer": 1, "subject": "arithmetic"},
        {"question": "Which is a metal?", "choices": ["iron", "neon", "sulphur", "iodine"], "answer": 0, "subject": "chemistry"},
    ),
)  # fmt: skip


# ---- training with the score as the reward ------------------------------------------------------------------------------

OPTIONS, UNKNOWN = 4, 0.5
REWARDS = {
    "dcs": dcs, "accuracy": lambda right, wrong, idk: right, "ternary": lambda right, wrong, idk: right - wrong,
}  # fmt: skip


def questions(rng: np.random.Generator, n: int, width: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is seen of questions (n, 4, width), their right options (n,), and which can be known (n,): there, an option's features
    are shifted by whether it is right; elsewhere they say nothing. Three features in common say how likely each kind is."""
    right, known = rng.integers(OPTIONS, size=n), rng.random(n) >= UNKNOWN
    seen = rng.normal(size=(n, OPTIONS, width))
    seen[np.arange(n), right, :3] += 1.2 * known[:, None]
    seen[:, :, 3:] = rng.normal(size=(n, 1, width - 3)) + 0.8 * known[:, None, None]
    return seen, right, known


def trained(name: str, seed: int, steps: int = 400, learnt: int = 100, batch: int = 256, rate: float = 0.02) -> Any:
    """A small network of options and IDK whose chances are trained to earn a reward in expectation.

    learnt: the first steps are paid by accuracy alone. Who has learnt nothing loses by every answer: it would soon say IDK to all
    questions, where the score is flat, and never learn.
    """
    import torch

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed_of("train", seed))
    each, last = torch.nn.Linear(6, 1), torch.nn.Linear(16, 1)
    idk = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), last)
    torch.nn.init.constant_(last.bias, -2.0)

    def chances(seen: np.ndarray) -> Any:
        x = torch.tensor(seen, dtype=torch.float32)
        return torch.softmax(torch.cat((each(x)[..., 0], idk(x.mean(1))), 1), 1)

    adam = torch.optim.Adam([*each.parameters(), *idk.parameters()], lr=rate)
    for step in range(steps):
        seen, right, _ = questions(rng, batch)
        reward = REWARDS["accuracy" if step < learnt else name]
        p = chances(seen)
        own = p[torch.arange(batch), torch.tensor(right)]
        loss = -reward(own, 1 - own - p[:, -1], p[:, -1]).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        return lambda seen: chances(seen).detach().numpy().astype(float)


@study
def hedging(run: Run, *, n: int = 2000, steps: int = 400) -> dict[str, float]:
    """Two raters that give the right option the same chance, and the rest to IDK or to a wrong option; and networks trained with
    each score as their reward: of what share of the questions that can be known, and that cannot, they abstain, and how often
    they are right where they answer.
    """
    seed = seed_of("study", run.seed) % 2**31
    rng = np.random.default_rng(seed)
    found = _hedged(rng.uniform(0.3, 0.9, n))
    seen, right, known = questions(rng, n)
    for name in REWARDS:
        p = trained(name, seed, steps)(seen)
        said, own = p.argmax(1), p[np.arange(n), right]
        answers = said < OPTIONS
        found |= {
            f"{name}: abstains, knowable": float(1 - answers[known].mean()),
            f"{name}: abstains, unknowable": float(1 - answers[~known].mean()),
            f"{name}: right where it answers": float((said == right)[answers].mean()) if answers.any() else 0.0,
            f"{name}: accuracy": float((said == right).mean()),
            f"{name}: dcs": float(dcs(own, 1 - own - p[:, -1], p[:, -1]).mean()),
        }  # fmt: skip
    return found


def _hedged(own: np.ndarray) -> dict[str, float]:
    """The lead of hedging to IDK over hedging to one wrong option, in each figure, where the right one has the chances `own`."""
    (item,) = read(benchmark.example[0], "example")
    beliefs = {
        "idk": [(0.0, p, 0.0, 0.0, 1 - p) for p in own], "wrong": [(1 - p, p, 0.0, 0.0, 0.0) for p in own],
    }  # fmt: skip
    told = {to: figures(Marks.of([item] * len(own), [marks(item, Verdict(p)) for p in ps])) for to, ps in beliefs.items()}
    return {
        f"lead in {name}": told["idk"][name] - told["wrong"][name] for name in ("dcs", "accuracy", "brier", "confidence_weighted")
    }


def distributional_correctness_score(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard "likelihood:MODEL?norm=sum&end=no" --on distributional-correctness-score`."""
    base = base or Recipe(name="distributional_correctness_score")
    return base.but(study=hedging())


fidelity = "core"
left_out = (
    "the eleven other benchmarks that the paper adapts, and examples before the questions; training of language models with it"
)

check = Check(
    says="trained with DCS, a network abstains where the answer cannot be known, and is right more often where it answers",
    versus=None, task="arithmetic", measure="dcs: right where it answers", direction="higher", margin=0.1,
    against="accuracy: right where it answers",
    tried="networks that had learnt nothing before: 2 of 6 came to abstain always, where the score is flat",
    finding="right on 75% of what it answers against 54%, abstaining on 81% of what cannot be known, 14% of what can (five seeds); "
    "plain 1, 0, -1 for right, IDK, wrong does the same (77%)",
)  # fmt: skip
