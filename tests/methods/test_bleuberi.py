"""BLEUBERI: BLEU as it was released, as a reward, and the choice of hard prompts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.models.embedded import untrained
from rewardlab.text.words import bleu as bleu_of
from rewardlab.text.words import mteval_tokens
from rewardlab.verifiers.text import bleu

REFERENCES = ["Send fresh fine corn today.", "Please send golden corn."]


def reply(text: str, answer=REFERENCES, length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("Corn?", answer), turns, "end")


# tokens: Please send fresh corn today .  6 of them; the references have 6 and 5
#   1: all are in one of them: 6 of 6;  2: "Please send", "corn today", "today ." of 5;  3: "corn today ." of 4;  4: none of 3
#   smoothed: 7/7, 4/6, 2/5, 1/4;  not shorter than the shortest
BY_HAND = (7 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25


def test_bleu_by_hand():
    assert bleu(variant="nmt").check("Please send fresh corn today.", REFERENCES).pays == pytest.approx(BY_HAND)
    # one reference, which has neither Please nor send: 4 of 6, 2 of 5, 1 of 4, 0 of 3
    one = (5 / 7 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25
    assert bleu(variant="nmt", references=1).check("Please send fresh corn today.", REFERENCES).pays == pytest.approx(one)


def test_a_reply_shorter_than_the_shortest_reference_is_penalised_and_a_longer_one_is_not():
    # "Send corn ." has 3 tokens, all in a reference; "corn ." is one of 2 pairs; neither the triple nor more
    value = bleu(variant="nmt").check("Send corn.", REFERENCES).pays
    assert value == pytest.approx(math.exp(1 - 5 / 3) * (4 / 4 * 2 / 3 * 1 / 2 * 1 / 1) ** 0.25)
    assert bleu(variant="nmt").check(REFERENCES[0], REFERENCES).pays == 1.0


def test_case_and_signs_count_as_they_are_written():
    assert bleu(variant="nmt").check("send fresh fine corn today", REFERENCES[0]).pays < 0.8
    assert bleu().check("send fresh fine corn today", REFERENCES[0]).pays == 1.0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # the tokens that sacrebleu 2.6.0 finds
        (
            'It\'s 3.5-fold (U.S.) "quoted", 1,000 a&b; x/y end.',
            'It\'s 3.5 - fold ( U . S . ) " quoted " , 1,000 a & b ; x / y end .',
        ),
        ("well-known, 7-up... ok?", "well-known , 7 - up . . . ok ?"),
        ("divi-\nded line\nhere", "divided line here"),
        ("", ""),
    ],
)
def test_tokens_are_those_of_mteval(text, tokens):
    assert mteval_tokens(text) == tokens.split()


def test_numbers_computed_by_sacrebleu():
    # sacrebleu 2.6.0, smooth_method="add-k", smooth_value=1, which smooths above unigrams and takes the closest length
    said, wanted = "It's 3.5-fold, they said.", ["It was 3.5-fold, he said.", "3.5 fold it is"]
    found = bleu_of(mteval_tokens(said), [mteval_tokens(w) for w in wanted])
    assert found == pytest.approx(0.4489252156483438)
    assert bleu_of(mteval_tokens(said), [mteval_tokens(w) for w in wanted], 4, unigrams=True, shortest=True) > found


def test_the_credit_of_a_group():
    recipe = registry.build("bleuberi")
    group = [reply("Please send fresh corn today.", length=2), reply(REFERENCES[0], length=4), reply("", length=1)]
    run = Run(None)
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    rewards = np.array([BY_HAND, 1.0, 0.0])
    expected = torch.tensor((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, run).double(), expected, atol=1e-4)
    # without any reference there is no verdict, and no credit
    group = [reply("Corn.", None), reply("Corn!", None)]
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    assert not batch.rewarded.any()


def test_it_takes_the_verifiers_place_and_keeps_other_rewards():
    assert str(registry.build("bleuberi").reward) == "1 * bleu(variant='nmt')"
    assert str(registry.build("grpo+bleuberi").reward) == "1 * bleu(variant='nmt')"
    assert str(registry.build("hapo+bleuberi").reward).endswith("+ 1 * bleu(variant='nmt')")


def test_hard_prompts_are_a_setting():
    recipe = registry.build("bleuberi", {"hard": 5})
    assert recipe.rollout.settings["keep"] == 5
    assert recipe.rollout.settings["pool"] == 50
    assert registry.load_recipe(json.loads(json.dumps(recipe.to_json()))) == recipe


# ---- agreement --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_agreement_with_a_known_quality_grows_with_references():
    task = registry.task("notes:references=8", test_size=300)
    whole = registry.module_of("bleuberi").check.by.settings["inner"]
    found = whole(task.test, Run(untrained(task=task)))
    assert found["n"] == 300
    assert found["pair_accuracy.one"] > 0.6
    assert found["pair_accuracy.eight"] > found["pair_accuracy.one"] + 0.02
