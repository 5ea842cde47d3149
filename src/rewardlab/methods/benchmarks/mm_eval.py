"""MM-Eval: pairs in 18 languages, made in them rather than translated, and the same pairs in 122 languages: the spread of scores.

    accuracy of each of five subsets;   overall = their mean (inferred: the paper has all of them and an average)
    d_l = mean score of the better replies in language l - mean score of the worse ones;   ldi = mean_l d_l / max_l d_l

Raters give replies in languages of little text scores in the middle: the better reply still wins, so that accuracy does not show
it, but its lead is small, and one reward scale no longer serves all languages. ldi is 1 where every language has the same lead.
`spread of` a level of resource is the mean of d_l / max d_l over its languages, and `low to high` the ratio of two of them, which
the largest lead does not move. Judges of pairs give no scores.

Son et al. 2024, arXiv:2410.17578, and the released code (scripts/run_rm.py, scripts/run_generative.py, analysis/calculate_ldi.ipynb
in a copy of guijinSON/MM-Eval), which runs that of RewardBench: a reward model loses a tie; a judge's tie, and a judgement that
cannot be read, is half a win. The subset of parallel pairs is called lang_res. Levels of resource are those of the 87 languages in
the released means, and of the 18 of the five subsets; other languages count as low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks, means
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.pairs import right
from rewardlab.scoreboard.procedural import figures_of, from_table, items_of
from rewardlab.util.ranking import kendall_tau

kind = "benchmark"
PARALLEL = "lang_res"
LEVELS = ("high", "medium", "low")
OF = {
    "high": "de en es fr it ja ru vi zh ces pol nld por ita spa fra jpn deu zho rus eng",
    "medium": "ar bn ca ko th hin est slv lit hrv srp heb cat bul slk tha fin ukr dan ell hun ron kor swe ind vie tur",
}
"""Languages by level, those of the five subsets by two letters and parallel ones by three (vi is high, and vie is medium)."""
LEVEL = {code: level for level, codes in OF.items() for code in codes.split()}


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    subset, language = str(row["subset"]), str(row["language"])
    if not subset or not language:
        raise ValueError("a row has a subset and a language")
    subset = PARALLEL if subset.startswith(PARALLEL) else subset
    name = f"{subset}/{language}"
    yield Item(f"{name}/{row['id']}", users(row["prompt"]), (row["chosen"], row["rejected"]), (1.0, 0.0), name)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """right; lead: by how much the better reply is scored higher, where replies are scored."""
    found = {"right": right(item, verdict)}
    if len(verdict.scores) == 2 and None not in verdict.scores:
        better, worse = verdict.scores
        found["lead"] = (better or 0.0) - (worse or 0.0)
    return found


def figures(marks: Marks) -> dict[str, float]:
    """overall, each subset over all its pairs, and accuracy by level; ldi and the spread by level, of parallel pairs."""
    parallel = np.array([subset.startswith(PARALLEL) for subset in marks.subset], bool)
    own = marks.where(~parallel)
    accuracy = {"overall": math.nan, **_by(own, 0)}
    accuracy["overall"] = _mean([x for name, x in accuracy.items() if name != "overall"])
    accuracy |= {f"{level} resource": x for level, x in _by(own, 1).items()}
    leads = {name.split("/")[1]: x for name, x in means(marks.where(parallel), "lead").items()}
    return accuracy | spread(leads)


def spread(leads: Mapping[str, float]) -> dict[str, float]:
    """ldi and the spread of each level of resource, of the mean lead in each language."""
    top = max(leads.values(), default=0.0)
    if top <= 0:
        return {}
    found = {"ldi": _mean([x / top for x in leads.values()])}
    for level in LEVELS:
        found[f"spread of {level}"] = _mean([x / top for name, x in leads.items() if _level(name) == level])
    high = found["spread of high"]
    return found | {"low to high": found["spread of low"] / high if high > 0 else math.nan}


def _by(marks: Marks, part: int) -> dict[str, float]:
    """Accuracy by subset (0), or by the level of the language (1)."""
    names = [name.split("/")[part] for name in marks.subset]
    groups = names if part == 0 else [_level(name) for name in names]
    return means(Marks(marks.columns, np.array(groups, object)), "right")


def _level(language: str) -> str:
    return LEVEL.get(language.split("_")[0], "low")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _row(subset: str, language: str, index: int, prompt: str, chosen: str, rejected: str) -> dict[str, Any]:
    return {"subset": subset, "language": language, "id": index, "prompt": prompt, "chosen": chosen, "rejected": rejected}


benchmark = Benchmark(
    title="MM-Eval", hub="prometheus-eval/MM-Eval", read=read, marks=marks, figures=figures, chance={"overall": 0.5},
    published=(Published("GPT-4 by scores", {"ldi": 0.85}, "analysis/calculate_ldi.ipynb of MM-Eval, 87 languages"),),
    example=(
        _row("chat", "de", 1, "Nenne eine Farbe.", "Rot.", "Farben sind schön."),
        _row("reasoning", "te", 2, "2 + 2 = ?", "4", "2 + 2 = 5"),
        _row("linguistics", "es", 3, "¿Cuál es el plural de lápiz?", "lápices", "lápizes"),
        _row("lang_res", "eng_Latn", 4, "Name a colour.", "Red.", "Colours are nice."),
        _row("lang_res", "bod_Tibt", 4, "Name a colour (bod).", "Red (bod).", "Colours are nice (bod)."),
    ),
)  # fmt: skip


LOW = "ssw wol lug tsn lin ibo sna tir grn yor mri xho bod asm hat jav amh lao tgk sin khm kan mya mar urd eus hye kat ben"
"""Languages of the study of little text: three of five, as in the released means."""


@study
def scores_in_the_middle(run: Run, *, raters: int = 40, pairs: int = 30) -> dict[str, float]:
    """Raters that draw scores in languages of little text towards the middle, by as much as each has by chance, noise and all.

    told: how far `low to high` ranks them by that (Kendall's tau with the share of the spread that is left); ldi: how far ldi does;
    control: how far the fall of accuracy from high to low resource does.
    """
    rng = np.random.default_rng(seed_of("study", run.seed))
    languages = [*OF["high"].split()[-7:], *OF["medium"].split()[-13:], *LOW.split()]
    rows = [_row(s, x, i, f"{x} {i}", "a", "b") for s in (PARALLEL, "chat") for x in languages for i in range(pairs)]
    items = items_of(benchmark, rows)
    found = []
    for _ in range(raters):
        left, noise = rng.uniform(0.3, 1.0), rng.uniform(0.2, 0.6)
        kept = {x: left if _level(x) == "low" else 1.0 for x in languages}
        leads = [kept[i.subset.split("/")[1]] * (np.array([1.0, 0.0]) + noise * rng.normal(size=2)) for i in items]
        scores = {i.id: lead.tolist() for i, lead in zip(items, leads, strict=True)}
        found.append((left, figures_of(benchmark, items, from_table(scores))))
    truth = [left for left, _ in found]
    fall = [told["low resource"] - told["high resource"] for _, told in found]
    by = {name: kendall_tau([told[name] for _, told in found], truth) for name in ("low to high", "ldi")}
    return {"told": by["low to high"], "ldi": by["ldi"], "control": kendall_tau(fall, truth)}


def mm_eval(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on mm-eval --data FILE`."""
    base = base or Recipe(name="mm_eval")
    return base.but(study=scores_in_the_middle())


fidelity = "whole"

check = Check(
    says="the spread of scores by language tells how far a rater gives languages of little text scores in the middle; accuracy "
    "does not", versus=None, task="arithmetic", measure="told", direction="higher", margin=0.2, against="control",
    finding="the ratio of the mean leads in low and high resource ranks them with a tau of 0.91, ldi with 0.74 (its largest lead "
    "is of one language), the fall of accuracy with 0.03 (five seeds)",
)  # fmt: skip
