"""What is missing of a call of the Python API is named, with the order of its arguments."""

from __future__ import annotations

import pytest

from rewardlab import RewardlabError, api


def test_a_method_by_another_name_is_no_recipe():
    with pytest.raises(
        RewardlabError, match=r"train\(recipe, model, task\) takes .*: recipe must be given, and not as method= or task="
    ):
        api.train(method="grpo", task=[{"prompt": "1 + 1 = ?", "answer": "2"}])
