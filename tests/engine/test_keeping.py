"""A step reads an episode once, in training and when it is measured."""

from __future__ import annotations

from rewardlab import api
from rewardlab.policies.llama.native_steps import NativeSteps
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.llama.steps import Steps


def test_the_turns_of_a_rollout_and_of_an_evaluation_go_on_from_what_was_computed(tmp_path, monkeypatch):
    # as of a model whose weights leave the processor's cache
    monkeypatch.setattr("rewardlab.policies.llama.policy.is_small", lambda policy: False)
    went_on, kept = [], []
    for kind in (Steps, NativeSteps):
        plain = kind.prefill_rest

        def counting(self, rests, starts, slots, plain=plain):
            went_on.extend(starts)
            return plain(self, rests, starts, slots)

        monkeypatch.setattr(kind, "prefill_rest", counting)
    update = LlamaPolicy.evaluate
    monkeypatch.setattr(LlamaPolicy, "evaluate", lambda self, *a, **b: (kept.append(self._kept), update(self, *a, **b))[1])
    config = {"steps": 1, "max_new": 8, "eval_problems": 2, "device": "cpu"}
    settings = {"problems": 2, "n": 3, "env": "try_again", "turns": 2}
    api.train("grpo", "untrained", "arithmetic", settings=settings, out=tmp_path / "run", **config)
    # two evaluations of two episodes and six of the step: each has a second turn
    assert sum(start > 0 for start in went_on) == 2 + 2 + 6
    # nothing is held while it learns
    assert kept
    assert not any(kept)
