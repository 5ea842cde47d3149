"""M-RewardBench: weights within sections, languages against English, odd rows, translation."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rewardlab.methods.benchmarks.m_rewardbench import LANGUAGES, LONG, SECTIONS, benchmark, figures, marks, read
from rewardlab.scoreboard.agreement import kappa, matched
from rewardlab.scoreboard.figures import Marks, resamples
from rewardlab.scoreboard.items import Verdict


def items(*rows):
    return [item for row in rows for item in read(row, "test")]


def row(index: int, source: str, language: str | None = None, **other):
    about = {"source": source, "language": language} if language else {"subset": source}
    return {"id": index, "prompt": f"{source} {index}", "chosen": "good", "rejected": "bad", **about, **other}


def of(own, right):
    return Marks.of(own, [marks(i, Verdict((float(x), 0.5))) for i, x in zip(own, right, strict=True)])


def test_mathematics_counts_as_much_as_code_and_sections_count_alike():
    own = items(row(1, "math-prm", "deu_Latn"), row(2, "hep-cpp", "deu_Latn"), row(3, "donotanswer", "deu_Latn"))
    told = figures(of(own, (1, 0, 1)))
    assert told["reasoning"] == pytest.approx(983 / (983 + 164))
    # two sections have pairs
    assert told["average"] == pytest.approx((983 / (983 + 164) + 1) / 2)
    assert told["de"] == told["average"]


def test_the_average_is_over_languages_without_english_and_the_gap_is_to_it():
    own = items(
        row(1, "donotanswer"), row(1, "donotanswer", "deu_Latn"), row(1, "donotanswer", "ell_Grek"), row(2, "donotanswer", "el")
    )
    told = figures(of(own, (1, 0, 1, 0)))
    assert told["average"] == pytest.approx((0 + 0.5) / 2)
    assert told["english"] == 1.0
    assert told["gap"] == told["gap in safety"] == pytest.approx(0.75)
    assert (told["high resource"], told["mid resource"]) == (0.0, 0.5)


def test_kappa_is_of_the_same_prompts_and_does_not_ask_what_is_right():
    sources = [("donotanswer", k) for k in range(4)]
    english, german = [row(k, s) for s, k in sources], [row(k, s, "deu_Latn") for s, k in reversed(sources)]
    # right on 0 and 1 in English; in German on 0 and 2: they agree on two of four, by chance 1/2
    told = figures(of(items(*english, *german), (1, 1, 0, 0, 0, 1, 0, 1)))
    assert told["kappa"] == pytest.approx(0.0)
    same = figures(of(items(*english, *german), (1, 1, 0, 0, 0, 0, 1, 1)))
    assert same["kappa"] == pytest.approx(1.0)
    assert same["gap"] == told["gap"] == 0.0


def test_a_tie_is_lost_by_a_reward_model_and_half_a_win_of_a_judge():
    (item,) = items(row(1, "donotanswer", "fr"))
    assert marks(item, Verdict((1.0, 1.0)))["right"] == 0.0
    assert marks(item, Verdict(orders={(0, 1): 0.5, (1, 0): 0.5}))["right"] == 0.5
    assert marks(item, Verdict(orders={(0, 1): 1.0, (1, 0): None}))["right"] == 0.75
    assert marks(item, Verdict())["right"] == 0.0


def test_chinese_in_two_scripts_is_two_languages(tmp_path):
    rows = [row(1, "donotanswer", code) for code in ("zho_Hans", "zho_Hant", "zh_Hans", "fra_Latn")]
    (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(r | {"prompt": r["language"][-4:]}) + "\n" for r in rows))
    own, equal, other, _ = benchmark.counted(path)
    # zh_Hans is zho_Hans
    assert ([i.meta["language"] for i in own], equal, other) == (["zh_Hans", "zh_Hant", "fr"], 1, 0)
    told = figures(of(own, (1, 0, 1)))
    assert (told["zh_Hans"], told["zh_Hant"]) == (1.0, 0.0)
    assert told["average"] == told["high resource"] == pytest.approx(2 / 3)
    for code in ("zho", "zh"):
        with pytest.raises(ValueError, match="zho_Hant"):
            items(row(1, "donotanswer", code))


def test_no_two_languages_have_one_name():
    assert len(LONG) == len(LANGUAGES) == len(set(LANGUAGES)) == 24


def test_translation_is_the_mean_of_its_subsets():
    own = items(row(1, "maple-de2en-easy"), row(2, "maple-de2en-easy"), row(1, "maple-de2en-hard"), row(1, "donotanswer", "fr"))
    told = figures(of(own, (1, 0, 1, 1)))
    assert (told["translation"], told["translation easy"], told["translation hard"]) == (0.75, 0.5, 1.0)
    assert told["average"] == 1.0


@pytest.mark.parametrize(
    ("change", "why"), [({"source": "chess"}, "subset 'chess'"), ({"language": "tlh_Latn"}, "language 'tlh_Latn'")]
)
def test_unknown_subsets_and_languages_are_refused(change, why):
    with pytest.raises(ValueError, match=why):
        items(row(1, "donotanswer", "fr") | change)


def test_a_resample_keeps_the_translations_of_a_prompt_together():
    own = items(*[row(k, "donotanswer", lang) for lang in ("en", "deu_Latn") for k in range(5)])
    found = of(own, (1, 1, 0, 0, 1, 1, 1, 0, 0, 1))
    assert all(figures(found.take(index))["gap"] == 0.0 for index in resamples(own, n=20))
    kappas = [figures(found.take(index))["kappa"] for index in resamples(own, n=20)]
    assert all(math.isnan(x) or x == pytest.approx(1.0) for x in kappas)


def test_matched_pairs_the_second_of_a_key_with_the_second():
    i, j = matched(np.array([7, 3, 7, 9]), np.array([7, 7, 7, 3]))
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == [(0, 0), (1, 3), (2, 1)]


def test_kappa_where_chance_agrees_always_is_unknown():
    assert math.isnan(kappa(np.array([1, 1]), np.array([1, 1])))
    assert math.isnan(kappa(np.array([]), np.array([])))


def test_the_counts_are_those_of_the_papers_table():
    totals = {name: sum(counts.values()) for name, counts in SECTIONS.items()}
    assert totals == {"chat": 296, "chat hard": 407, "safety": 736, "reasoning": 983 + 983}
    assert benchmark.headline == "average"
