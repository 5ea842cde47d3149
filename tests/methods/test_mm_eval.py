"""MM-Eval: subsets count alike, leads by language, scores of judges, odd rows, and the published index of GPT-4's scores."""

from __future__ import annotations

import math

import pytest

from rewardlab.methods.benchmarks.mm_eval import figures, marks, read, spread
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict

LEADS = (
    "2.45 2.46 2.1 1.56 1.72 2.18 2.24 2.46 2.44 2.72 2.72 1.48 2.06 2.32 2.86 2.56 2.58 2.52 2.54 0.72 2.64 2.58 2.58 "
    "2.56 2.5 3.02 3.14 2.04 1.86 2.8 2.82 2.82 2.84 2.96 2.58 2.84 2.56 2.84 2.88 2.54 2.04 2.54 2.94 2.72 3.04 2.92 "
    "3.16 2.9 2.39 3.14 2.54 2.8 2.92 2.7 3.02 3.14 2.96 3.06 3.16 2.94 2.94 2.9 3.1 2.74 3.2 3.06 3.2 2.96 3.14 3.16 "
    "3.08 2.98 2.82 3.06 3.02 3.02 3.04 2.96 2.96 3.08 3.08 3 2.88 3.14 3.04 2.96 3.16"
)
"""GPT-4's mean score of better replies minus that of worse ones in each language: analysis/sample_data of the released code."""
CODES = (
    "ssw tso nso wol lug tsn lin nya ibo sna sot tir grn yor sun mri snd xho zul bod asm hat kin jav hau ceb war amh lao "
    "mlt som tgk pan kir sin tgl khm guj afr kan mya tel mar mal kaz urd mkd eus hye isl kat tam ben hin est slv lit hrv "
    "srp heb cat bul slk tha fin ukr dan ell hun ron kor swe ind vie tur ces pol nld por ita spa fra jpn deu zho rus eng "
)


def row(subset: str, language: str, index: int = 0):
    return {"subset": subset, "language": language, "id": index, "prompt": f"{language} {index}", "chosen": "a", "rejected": "b"}


def told(rows, scores):
    own = [item for one in rows for item in read(one, "test")]
    return figures(Marks.of(own, [marks(i, Verdict(s)) for i, s in zip(own, scores, strict=True)]))


def test_subsets_count_alike_and_languages_by_their_resource():
    rows = [row("chat", "de"), row("chat", "de", 1), row("chat", "sw"), row("safety", "eu")]
    found = told(rows, [(1.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
    assert found["chat"] == pytest.approx(2 / 3)
    assert found["overall"] == pytest.approx((2 / 3 + 0) / 2)
    assert (found["high resource"], found["low resource"]) == (1.0, 0.0)
    assert "ldi" not in found


def test_the_index_is_the_mean_lead_over_the_largest_one():
    rows = [
        row("lang_res", "eng_Latn"),
        row("lang_res", "eng_Latn", 1),
        row("lang_res", "tur_Latn"),
        row("lang_res_easy", "bod_Tibt"),
    ]
    # leads 3 (of 4 and 2), 1.5 and 0.75
    found = told(rows, [(5.0, 1.0), (5.0, 3.0), (4.0, 2.5), (3.0, 2.25)])
    assert found["ldi"] == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert (found["spread of high"], found["spread of medium"], found["spread of low"]) == (1.0, 0.5, 0.25)
    assert found["low to high"] == 0.25
    assert math.isnan(found["overall"])


def test_the_index_does_not_depend_on_the_scale_of_scores_and_a_rater_without_leads_has_none():
    rows = [row("lang_res", "eng_Latn"), row("lang_res", "bod_Tibt")]
    scores = [(5.0, 1.0), (3.0, 2.0)]
    assert told(rows, [(7 * a - 2, 7 * b - 2) for a, b in scores])["ldi"] == pytest.approx(told(rows, scores)["ldi"])
    assert "ldi" not in told(rows, [(1.0, 1.0), (1.0, 2.0)])


def test_judges_of_pairs_have_accuracy_and_no_spread():
    own = [item for one in (row("chat", "de"), row("lang_res", "eng_Latn")) for item in read(one, "test")]
    verdict = Verdict(orders={(0, 1): 1.0, (1, 0): 0.5})
    found = figures(Marks.of(own, [marks(item, verdict) for item in own]))
    assert found["overall"] == 0.75
    assert "ldi" not in found


def test_a_row_without_a_language_is_refused():
    with pytest.raises(ValueError, match="subset and a language"):
        list(read(row("chat", ""), "test"))


def test_the_published_index_comes_out_of_the_released_means():
    leads = dict(zip(CODES.split(), map(float, LEADS.split()), strict=True))
    assert len(leads) == 87
    found = spread(leads)
    assert round(found["ldi"], 2) == 0.85
    assert found["spread of low"] < found["spread of medium"] < found["spread of high"]
