"""JudgeBench: which of two replies of one strong model is right? Asked in both orders, so that a liking for one place is no help.

    a pair counts if the two verdicts together favour the right reply: right + right, or right + tie

Tan et al. 2024, arXiv:2410.12784, and the released code (ScalerLab/JudgeBench, utils/metrics.py). Questions of MMLU-Pro
(knowledge), LiveBench (reasoning, mathematics) and LiveCodeBench (code) with verified answers. The table of the paper is of the
replies of GPT-4o (350 pairs); those of Claude 3.5 Sonnet are the figure `claude`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.files import rows_of
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.reproduced import reproduced

kind = "benchmark"
PARTS = {"mmlu-pro": "knowledge", "livebench-reasoning": "reasoning", "livebench-math": "math", "livecodebench": "code"}
SIGNS = {"A>B": 1.0, "A>>B": 1.0, "B>A": 0.0, "B>>A": 0.0, "A=B": 0.5}


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    source, label = str(row["source"]), row["label"]
    if label not in ("A>B", "B>A"):
        raise ValueError(f"the label is A>B or B>A, and not {label!r}")
    subset = next((part for name, part in PARTS.items() if source.startswith(name)), source)
    worth = (1.0, 0.0) if label == "A>B" else (0.0, 1.0)
    writer = "claude" if "claude" in str(row.get("response_model", "")) else "gpt-4o"
    replies = (row["response_A"], row["response_B"])
    yield Item(str(row["pair_id"]), users(row["question"]), replies, worth, f"{writer}/{subset}")


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """right: by both orders.  one_order: with reply A shown first, as it would be if the place were not looked at."""
    (pair,) = item.pairs
    first, second = verdict.order(*pair), verdict.order(*pair[::-1])
    votes = [_sign(first), -_sign(second) if verdict.orders else _sign(first)]
    shown = verdict.order(0, 1)
    once = 0.0 if shown is None else float((shown > 0.5) == (item.worth[0] > item.worth[1]) and shown != 0.5)
    return {"right": float(sum(votes) > 0), "one_order": once}


def _sign(x: float | None) -> int:
    return 0 if x is None or x == 0.5 else 1 if x > 0.5 else -1


def figures(marks: Marks) -> dict[str, float]:
    """overall, and by the kind of question, on the replies of GPT-4o; on those of Claude."""
    found = {"overall": marks.only(*[s for s in marks.subsets() if s.startswith("gpt-4o")]).mean("right")}
    for part in PARTS.values():
        found[part] = marks.only(f"gpt-4o/{part}").mean("right")
    claude = [s for s in marks.subsets() if s.startswith("claude")]
    found["one_order"] = marks.only(*[s for s in marks.subsets() if s.startswith("gpt-4o")]).mean("one_order")
    return found | ({"claude": marks.only(*claude).mean("right")} if claude else {})


def outputs(path: Path) -> Iterator[tuple[str, str, Verdict]]:
    """The released outputs: two judgments a pair, the second with the replies exchanged."""
    for _, row in rows_of(path):
        one, other = (SIGNS.get(str(j["decision"])) for j in row["judgments"])
        yield str(row["judge_model"]), str(row["pair_id"]), Verdict(orders={(0, 1): one, (1, 0): other})


_TABLE = "arXiv:2410.12784"
_O1 = {"overall": 0.6571, "knowledge": 0.5844, "reasoning": 0.6224, "math": 0.8214, "code": 0.7857}

benchmark = Benchmark(
    title="JudgeBench", data="judgebench", released="judgments", hub="ScalerLab/JudgeBench", read=read, marks=marks,
    figures=figures, outputs=outputs, chance={"overall": 0.5},
    published=(
        Published("o1-mini (arena-hard prompt)", _O1, _TABLE, "o1-mini-2024-09-12"),
        Published("Skywork-Reward-Gemma-2-27B", {"overall": 0.6429}, _TABLE, "Skywork_Skywork-Reward-Gemma-2-27B"),
        Published("internlm2-20b-reward", {"overall": 0.6343}, _TABLE, "internlm_internlm2-20b-reward"),
        Published("Skywork-Reward-Llama-3.1-8B", {"overall": 0.6229}, _TABLE, "Skywork_Skywork-Reward-Llama-3.1-8B"),
        Published("internlm2-7b-reward", {"overall": 0.5943}, _TABLE, "internlm_internlm2-7b-reward"),
        Published("GRM-Gemma-2B", {"overall": 0.5943}, _TABLE, "Ray2333_GRM-Gemma-2B-rewardmodel-ft"),
        Published("claude-3-haiku (arena-hard prompt)", {"claude": 0.3222}, _TABLE, "claude-3-haiku-20240307"),
    ),
    example=(
        {
            "pair_id": "a", "source": "livebench-math", "question": "What is 7 * 8?", "response_model": "gpt-4o",
            "response_A": "7 * 8 = 54", "response_B": "7 * 8 = 56", "label": "B>A",
        },
        {
            "pair_id": "b", "source": "mmlu-pro-law", "question": "Who makes laws? (A) courts (B) parliament", "label": "A>B",
            "response_model": "gpt-4o", "response_A": "(B)", "response_B": "Courts make them, so (A).",
        },
    ),
)  # fmt: skip


@study
def published_figures(run: Run) -> dict[str, float]:
    """The published figures that come out of the released outputs of seven judges."""
    return reproduced(benchmark)


def judgebench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on judgebench`."""
    base = base or Recipe(name="judgebench")
    return base.but(study=published_figures())


fidelity = "whole"

check = Check(
    says="the figures of the paper come out of the released outputs", versus=None, task="arithmetic", measure="met",
    direction="higher", margin=0.9, against="control",
    finding="all eleven published figures of seven judges come out to the last digit; with each verdict given to the next pair, "
    "none does",
)  # fmt: skip
