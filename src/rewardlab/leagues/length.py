"""Shorter right replies at the same accuracy: bonuses, budgets and penalties of length, beside GRPO, which has none."""

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.length import length_of_right
from rewardlab.rollouts.independent import independent

BUDGETS = {"start": 64, "end": 28, "told": ""}
"""Of curriculum_grpo, whose own are for hundreds of tokens; a small policy would not understand a sentence about them."""
LENGTHS = {"right_until": 24, "wrong_from": 48, "longest": 96}
"""The same for phi_4_reasoning."""

CHAINS = "overthinking:difficulty=[1,2]"
DEAR = "one of its runs on a pretrained model takes minutes; those that were better in both small worlds, and grpo, met there"

league = League(
    question="Which method makes right replies shorter, and what does it cost in accuracy?",
    want="shorter answers",
    baseline="grpo",
    members=(
        Member("grpo"),
        Member("hapo", knob="weight", values=(0.5, 2.0)),
        Member("laser", knob="alpha", values=(0.25, 1.0)),
        Member("grpo_lambda", knob="alpha", values=(0.1, 0.4)),
        Member("curriculum_grpo", small=BUDGETS),
        Member("pear"),
        Member("phi_4_reasoning", small=LENGTHS),
        Member("sar", "sar_self_aligned_reward", settings={"n": 8}),
        Member("vsrm", "vsrm_stepwise", small={
            # its base samples one reply to each of many problems, as PPO does: as many replies an update as the others
            "problems": 64, "n": 4, "splitter": "newline", "at": "", "after": 0, "apart": 0, "tokens": 8,
        }),
        Member("rlsp", "grpo+rlsp"),
    ),
    worlds=(
        World(
            "redundant", "arithmetic:biased=0.75,error=0.1,redundant=0.4,size=160",
            "chains of arithmetic by a teacher who writes checks that add nothing; several members' checks were made there",
        ),
        World(
            "overthinking", "overthinking:size=160",
            "chains of one to five steps, with checks that add nothing and corrections that are needed", new=True,
        ),
        World(
            # rows come again once, as in the other worlds; at 3e-4 grpo was right most often on a development seed
            "on SmolLM2", f"{CHAINS},size=80",
            "chains of one or two steps, by a pretrained language model with adapters that was taught a teacher's solutions",
            new=True, model=f"smollm2:{CHAINS}", lora_rank=16, steps=20, problems=120, rates=(3e-4,), pairs=5, varied=False,
            learns=False,
            absent=dict.fromkeys(("curriculum_grpo", "pear", "phi_4_reasoning", "sar", "vsrm", "rlsp"), DEAR),
        ),
    ),
    outcome=Outcome("log_right_length", "lower", "length of right replies", margin=0.05, scale="log", unit="tokens"),
    guard=Guard("pass@1", at_least=-0.05, says="right replies"),
    measure=length_of_right(rollout=independent(n=4)),
    settings={"n": 8, "problems": 8, "epochs": 1},
    steps=40,
    problems=250,
    own_learns=False,
    needs="Your rows need the columns prompt and answer. hapo learns something only where rows come again.",
    first="`laser` or `grpo_lambda`",
    left_out={
        "anytime_reasoner": "it trains on answers forced at every budget of every trace: one of its runs takes as long as six",
    },
)  # fmt: skip
