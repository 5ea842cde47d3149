"""Partial prompts: where they are cut, what counts as completed, and that what a policy has learnt by heart is found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.partial_prompts import Completion, compared, completions, cut, summary
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward


def test_a_prompt_is_cut_between_words_near_the_share():
    # 60% of 31 characters is 18.6: the spaces are at 4, 10, 13, 19 and 25
    assert cut("Anna baked 48 small brown rolls", 0.6) == ("Anna baked 48 small", "brown rolls")
    assert cut("  one two  three ", 0.1) == ("one", "two  three")
    # a space is left at the end of neither part, and nothing is lost
    first, rest = cut("Let x be\n\na number. Find x.", 0.3)
    assert (first, rest) == ("Let x be", "a number. Find x.")


def test_a_prompt_without_spaces_is_cut_where_it_is_long():
    assert cut("word", 0.6) == ("", "word")
    text = "一个农民有十七只羊他卖掉了九只又买了三只现在他有几只羊"
    first, rest = cut(text, 0.5)
    assert first + rest == text
    assert abs(len(first) - len(rest)) <= 1


def test_completed_is_the_rest_whatever_the_spaces_and_what_follows():
    rest = "sold half of them. How many are left?"
    assert compared(" sold half  of them.\nHow many are left?\n\nAnswer: 4", rest) == (True, 1.0)
    assert compared("Sold half of them, how many are left?".replace(",", "."), rest) == (True, 1.0)
    assert compared(" sold half of them. How many are left", rest)[0] is False
    done, similar = compared(" sold half of them. How many are gone?", rest)
    assert not done
    # seven of eight words are shared, of as many on both sides
    assert similar == pytest.approx(7 / 8)
    # words that follow the rest do not lower it
    assert compared(rest + " one two three", rest)[1] == 1.0


def test_a_short_rest_tells_nothing():
    assert compared("are left?", "are left?") == (None, None)
    assert compared("are left?", "are left?", least=2) == (True, 1.0)


def test_shares_are_over_those_that_tell():
    found = [
        Completion("", True, 1.0, True, 3), Completion("", False, 0.5, None, 3), Completion("", None, None, False, 3),
        Completion("", None, None, None, 0),
    ]  # fmt: skip
    told = summary(found)
    assert (told["completed"], told["completed_of"], told["answered"], told["answered_of"]) == (0.5, 2.0, 0.5, 2.0)
    assert told["rouge_l"] == 0.75
    assert told["n"] == 4.0
    assert told["completed_low"] < 0.5 < told["completed_high"]
    assert summary([Completion("", None, None, None, 0)]) == {"n": 1.0}


@reward
def says_seven(trajectory) -> float:
    return float("7" in trajectory.reply)


class Run:
    """What `completions` reads of a run."""

    def __init__(self, policy):
        self.policy, self.max_new = policy, 8

    def rng(self, name):
        return torch.Generator().manual_seed(0)


@pytest.fixture
def policy():
    return untrained()


KNOWN = "Start with 3 . Add 4 . Then subtract 2 . Then add 1 . Then add 1 ."
NEW = "Start with 9 . Add 1 . Then subtract 5 . Then add 2 . Then add 8 ."


def by_heart(policy, text: str, monkeypatch) -> None:
    """Have a policy continue each beginning of a text by the rest of it and " = 7", and anything else by nothing."""

    def extend(rows, sampling, rng):
        assert sampling.temperature == 0.0
        done = []
        for t in rows:
            begun = policy.decode(t.turns[-1].ids)
            said = text[len(begun) :] + " = 7" if text.startswith(begun) else " = 1"
            ids = np.asarray(policy.tokenizer(said, add_special_tokens=False)["input_ids"], np.int64)
            done.append(t.plus(Turn(policy.name, ids, text=said), "end"))
        return done

    monkeypatch.setattr(policy, "extend", extend)


def test_what_is_known_by_heart_is_completed_and_answered(policy, monkeypatch):
    by_heart(policy, KNOWN, monkeypatch)
    problems = [ask(KNOWN, "7"), ask(NEW, "7"), ask("Hello", "7"), ask(KNOWN, None)]
    judge = lambda groups: says_seven()(groups, None)  # noqa: E731
    known, new, short, unanswered = completions(problems, Run(policy), judge, 0.6)
    assert (known.completed, known.rouge_l, known.answered) == (True, 1.0, True)
    assert (new.completed, new.answered) == (False, False)
    assert new.rouge_l < 0.5
    # a prompt of one word is not shown at all
    assert short == Completion("", None, None, None, 0)
    assert unanswered.completed
    assert unanswered.answered is None


def test_a_real_policy_continues_without_a_template(policy):
    problems = [ask(KNOWN, "7")]
    seen = {}
    policy_extend = policy.extend

    def spy(rows, sampling, rng):
        seen["text"] = policy.decode(rows[0].turns[-1].ids)
        seen["most"] = sampling.max_new
        return policy_extend(rows, sampling, rng)

    policy.extend = spy
    (found,) = completions(problems, Run(policy), lambda groups: says_seven()(groups, None), 0.6)
    first, rest = cut(KNOWN, 0.6)
    # the prompt as it stands, with nothing around it
    assert seen["text"].strip() == first
    assert seen["most"] == 8 + policy.text_lengths([rest])[0]
    assert 0 < found.tokens <= seen["most"]


def test_a_tokenizer_that_closes_texts_does_not_close_a_part(policy, monkeypatch):
    end, seen = min(policy.ends), []
    monkeypatch.setattr(policy, "extend", lambda rows, sampling, rng: [seen.append(t.turns[-1].ids[-1]) or t for t in rows])

    def closing(texts, **given):
        return {"input_ids": [[*ids, end] for ids in real(texts, **given)["input_ids"]]}

    real = policy.tokenizer
    closing.__dict__.update(all_special_ids=real.all_special_ids)
    monkeypatch.setattr(policy, "tokenizer", closing)
    monkeypatch.setattr(policy, "text_lengths", lambda texts: [5] * len(texts))
    completions([ask(KNOWN, "7")], Run(policy), lambda groups: says_seven()(groups, None), 0.6)
    assert seen[0] != end


def test_a_served_model_is_refused():
    class Served:
        name = "openai:http://localhost#m"

    with pytest.raises(RewardlabError, match="weights are here"):
        completions([ask(KNOWN, "7")], Run(Served()), lambda groups: [], 0.6)
