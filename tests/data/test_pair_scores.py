"""How good the replies of a pair are, in the columns of published data."""

import pytest

from rewardlab.data.pair_scores import origin, with_scores

PAIR = {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "Planets."}


@pytest.mark.parametrize(
    ("columns", "scores", "names"),
    [
        ({"margin": 1.5}, (1.5, 0.0), ("margin",)),
        ({"margin": "1.5"}, (1.5, 0.0), ("margin",)),
        # a chance of 3/4 is three votes of four
        ({"label": 0.75}, (0.75, 0.25), ("label",)),
        ({"chosen_rating": 4, "rejected_rating": 2, "margin": 9}, (4, 2), ("chosen_rating", "rejected_rating")),
        ({"score_chosen": 8.0, "score_rejected": 4.5}, (8.0, 4.5), ("score_chosen", "score_rejected")),
        ({"chosen_score": 3, "rejected_score": 1, "margin": 9}, (3, 1), ("chosen_score", "rejected_score")),
    ],
)
def test_scores_are_found_where_published_data_has_them(columns, scores, names):
    row = with_scores(PAIR | columns)
    assert (row["chosen_score"], row["rejected_score"]) == scores
    assert origin(row) == names


@pytest.mark.parametrize("columns", [{}, {"label": "good"}, {"label": 3}, {"chosen_rating": 4}, {"margin": None}])
def test_what_says_nothing_adds_nothing(columns):
    assert with_scores(PAIR | columns) == PAIR | columns
    assert origin(PAIR | columns) == ()


def test_rows_that_are_no_pairs_stay_as_they_are():
    assert with_scores({"prompt": "1+1", "label": 0.5}) == {"prompt": "1+1", "label": 0.5}
