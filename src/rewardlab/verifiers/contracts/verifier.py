"""The verifier of contracts: the pre- and postconditions that a reply states are proved, and compared with a reference."""

from __future__ import annotations

from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, workers
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.text.answers import after_thinking
from rewardlab.text.blocks import last_block
from rewardlab.util.extras import require
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

PROVER = "rewardlab.verifiers.contracts.prover:judge"
PARTS = ("found", "unchanged", "reads", "honest", "verifies", "weaker", "stronger", "implies")
NOTHING = dict.fromkeys(PARTS, 0.0)


@verifier(over="pairs", modules=("z3",))
def method_contract(pairs: list[Pair], *, effort: PositiveInt = 2_000_000, seconds: PositiveFloat = 20.0) -> list[Verdict]:
    """Right if the method satisfies the stated contract, and the contract is at least as strong as the reference.

    answer: the method with its reference contract, in the subset of Dafny of `language.py`.  A reply states clauses (`requires`,
    `ensures`), alone or on the whole method with its code unchanged; in its last ```dafny block, or else as the whole reply.

    At least as much: it requires no more than the reference does, and where that holds, ensures it of any result. Both, and that
    the method keeps the contract, are proved by z3 for all integers; what is not proved with `effort` (z3's `rlimit`; 2 million are
    about a second) does not count.  seconds: for all proofs of a reply.

    parts: found (there is a text), unchanged (the code, if it is repeated), reads, honest (it does not ensure
    `true`, `false` or x == x), verifies, weaker, stronger, and implies, which is both.
    """
    try:
        require("verify", "z3", what="the verifier method_contract")
        pool = workers(PROVER, seconds=seconds)
        texts = [stated_text(pair.response) for pair in pairs]
        # an empty reply is not proved, but its gold method still has to be usable
        results = pool.map([(text or None, str(pair.answer), effort) for text, pair in zip(texts, pairs, strict=True)])
        failed = [i for i, result in enumerate(results) if isinstance(result, Failed)]
        alone = dict(zip(failed, pool.map([(None, str(pairs[i].answer), effort) for i in failed]), strict=True))
    except RewardlabError as problem:
        return [no_verdict(str(problem)) for _ in pairs]
    return [_verdict(text, result, alone.get(i)) for i, (text, result) in enumerate(zip(texts, results, strict=True))]


def stated_text(response: str) -> str:
    """The contract of a reply: its last ```dafny block after any thinking, else the whole text."""
    text = after_thinking(response)
    block = last_block(text, "dafny", "")
    return (text if block is None else block).strip()


def _verdict(text: str, result: Done | Failed, alone: Done | Failed | None) -> Verdict:
    """alone: what the gold method gives without the reply, where the two together failed."""
    gold = alone or result
    if isinstance(gold, Failed):
        return no_verdict(f"the gold method {gold.why}")
    if "unusable" in gold.value:
        return no_verdict(gold.value["unusable"])
    if not text:
        return wrong("no contract found", parts=NOTHING)
    if isinstance(result, Failed):
        return wrong(f"the proof {result.why}", text[:500], parts=NOTHING | {"found": 1.0, "unchanged": 1.0})
    return _judged(text[:500], result.value)


def _judged(text: str, found: dict[str, Any]) -> Verdict:
    parts = {"found": 1.0, **{name: float(found[name]) for name in ("reads", "verifies", "weaker", "stronger")}}
    parts |= {"unchanged": float(not found["changed"]), "honest": float(not found["trivial"])}
    parts["implies"] = parts["weaker"] * parts["stronger"]
    proved = found["verifies"] and parts["implies"]
    return right(text, found["why"], parts=parts) if proved else wrong(found["why"], text, parts=parts)
