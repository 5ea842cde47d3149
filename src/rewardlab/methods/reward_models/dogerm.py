"""DogeRM: merge a reward model with a language model that knows a domain, so that it judges that domain without its preferences.

    theta = w theta_RM + (1 - w) theta_LM      all weights of the trunk; of embeddings, those of tokens that both know
    the scalar head stays the reward model's;  w: the one that ranks most of a few pairs of the domain rightly

Both were trained from the same model: what each of them learnt is a small change of the same weights. General preferences are there
already, and texts of a domain are easier to get than preferences that its experts give.

Lin et al. 2024, arXiv:2407.01470; the merge follows the released code (MiuLab/DogeRM, 122ade6, src/merge_linear.py), and w = 1,
0.95, ..., 0 its run_merge.sh. There tokens that the language model alone knows are added; here they are left out, since the reward
model's tokenizer, which stays, never writes them. (inferred): of equal w, the largest, which changes the reward model least.

--model is the language model, and `reward_model` a checkpoint or a run; the rows are pairs of the domain, of which each step looks
at further ones. With `weight` given, --steps 1 does it. The run holds the merged reward model. Without `reward_model` both parents
are trained here from the --model: the reward model on `pairs` whose question does not match `domain`, the language model on as many
chosen replies of those that do.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Learner, Message, Problem, Recipe, Run, Trajectory, Update, loop, measure
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.methods.baselines.rlhf import ENDLESS, UNTAUGHT, pairs_in, size_of, teach
from rewardlab.objectives.pairs import preference_loss
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import token_mean
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveInt, Share

MERGED, GENERAL, DOMAIN = "reward", "general", "expert"
TAUGHT, RIGHT, WEIGHT = "dogerm.taught", "dogerm.right", "dogerm.weight"
VALUE_HEAD, VOCABULARY_HEAD = re.compile(r"value_head|surprise\."), re.compile(r"(^|\.)(head|lm_head|embed_out|output)(\.|$)")
SEARCHED = 200  # training problems looked through for each one of a domain


# ---- the merge -----------------------------------------------------------------------------------------------------------


def merged(reward_model: Any, language_model: Any, weight: float) -> dict[str, Tensor]:
    """The weights of the merge, by the names of `reward_model.state()`: w times its own and 1 - w times the language model's.

    Raises RewardlabError for models that were not trained from the same one.
    """
    own, other = reward_model.state(), dict(language_model.state())
    name = _embedding(reward_model)
    if name in other:
        other[name] = _in_its_vocabulary(reward_model, language_model, own[name], other[name])
    _check_same_base(own, other)
    # in float32: in 16 bits small changes would vanish
    return {
        k: w if k not in other or VALUE_HEAD.search(k) else (weight * w.float() + (1 - weight) * other[k].float()).to(w.dtype)
        for k, w in own.items()
    }


def _embedding(policy: Any) -> str:
    """The name of the input embeddings in the policy's state."""
    module = policy.model
    table = module.get_input_embeddings().weight if hasattr(module, "get_input_embeddings") else module.embed
    return next((k for k, w in policy.state().items() if w.data_ptr() == table.data_ptr()), "")


def _in_its_vocabulary(reward_model: Any, language_model: Any, own: Tensor, other: Tensor) -> Tensor:
    """(V, d) the language model's embeddings by the ids of the reward model; of tokens that it does not know, the latter's own."""
    known, words = language_model.tokenizer.get_vocab(), reward_model.tokenizer.get_vocab()
    if known == words and own.shape == other.shape:
        return other
    shared = [(i, known[token]) for token, i in words.items() if token in known and i < len(own) and known[token] < len(other)]
    table, (to, at) = own.clone(), torch.tensor(shared, dtype=torch.long).view(-1, 2).T
    table[to.to(own.device)] = other[at.to(other.device)].to(own)
    return table


def _check_same_base(own: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> None:
    odd = [k for k in own if k not in other and not (VALUE_HEAD.search(k) or VOCABULARY_HEAD.search(k))]
    odd += [k for k in other if k not in own and not VOCABULARY_HEAD.search(k)]
    odd += [k for k in own if k in other and own[k].shape != other[k].shape]
    if odd:
        raise RewardlabError(
            f"reward model and language model were not trained from the same model: {min(odd)} is missing in one of them, or has "
            "another shape (where they were, load both in the same way: hf: before both names, or before neither)"
        )


# ---- a step: score the pairs by each merge -----------------------------------------------------------------------------------


@loop
def merge_models(
    recipe: Recipe, run: Run, ops: Any, *, domain: str = "", weight: Share | None = None, grid: PositiveInt = 20,
    pairs: PositiveInt | None = None,
) -> None:  # fmt: skip
    """Make the run's reward model the merge of its parents with the weight that ranks most pairs of the domain so far.

    domain: a regular expression of questions, "" matches all.  weight: of the reward model; None: the best of 0, 1 / grid, ..., 1.
    pairs: that a parent which is trained here learns from (`lesson_of`).  Logs `weight`, and `at/W`, the accuracy on training pairs
    by weight W.
    """
    expert = _parents(recipe, run, ops, domain, pairs)
    general, model = ops.learners[GENERAL].model, ops.learners[MERGED].model
    if weight is None:
        problems = problems_of(domain, recipe.update.problems, ops)
        right = run.memory.setdefault(RIGHT, [0.0] * (grid + 1))
        seen = run.memory[f"{RIGHT}.of"] = run.memory.get(f"{RIGHT}.of", 0) + len(problems)
        for i in range(grid + 1):
            model.load_state(merged(general, expert, i / grid))
            right[i] += len(problems) * _accuracy(problems, run, MERGED)
            run.log(f"at/{i / grid:g}", right[i] / seen)
        weight = max(range(grid + 1), key=lambda i: (right[i], i)) / grid
    model.load_state(merged(general, expert, weight))
    run.memory[WEIGHT] = weight
    run.log("weight", weight)


def _parents(recipe: Recipe, run: Run, ops: Any, domain: str, pairs: int | None) -> Any:
    """The language model of the domain. In the first step, parents that are trained here are taught."""
    if not all(p.requires_grad for p in run.policy.parameters()):
        raise RewardlabError("dogerm merges whole weights: leave out --lora-rank, and merge adapters first (rewardlab export)")
    if DOMAIN not in ops.learners:
        if run.step == 0:
            _check_layout(ops.learners[GENERAL].model, next(x.init for x in recipe.also if x.name == GENERAL))
        return run.policy
    if not domain:
        raise RewardlabError(
            "dogerm merges a reward model, --reward-model PATH, into the --model; or else trains both, and needs --domain, a "
            "regular expression of the questions of the language model's domain"
        )
    if TAUGHT not in run.memory:
        for name, elsewhere in ((GENERAL, True), (DOMAIN, False)):
            found = lesson_of(domain, pairs, run, ops, elsewhere)
            teach(ops, run, name, found, 1, recipe.update.problems, f"teaching the model {name!r}")
        run.memory[TAUGHT] = True
    return ops.learners[DOMAIN].model


def lesson_of(domain: str, pairs: int | None, run: Run, ops: Any, elsewhere: bool) -> list[Problem]:
    """The training problems of the domain, or all others, that a parent learns from: each once, at most `pairs`; of data without an
    end the next 2,000, or `pairs`."""
    if size_of(ops.task.train) is None:
        return problems_of(domain, pairs or ENDLESS, ops, elsewhere)
    found = [p for p in pairs_in(ops, run, None) if bool(re.search(domain, p.question, re.DOTALL)) != elsewhere]
    if not found:
        raise RewardlabError(f"no training problem {'is outside of' if elsewhere else 'matches'} the domain {domain!r}")
    return found[:pairs]


def problems_of(domain: str, n: int, ops: Any, elsewhere: bool = False) -> list[Problem]:
    """The next n training problems whose question matches the regular expression, or of all others."""
    found: list[Problem] = []
    for _ in range(SEARCHED * n):
        found += [p for p in ops.problems(1) if bool(re.search(domain, p.question, re.DOTALL)) != elsewhere]
        if len(found) == n:
            return found
    what = "do not match" if elsewhere else "match"
    raise RewardlabError(f"of {SEARCHED * n} training problems {len(found)} {what} the domain {domain!r}, and {n} are needed")


def _check_layout(model: Any, name: str) -> None:
    """Refuse a reward model of others that reads its score elsewhere than at the end of a turn, where the merge will be read."""
    config, words = model.model.config, model.tokenizer
    if "rewardlab" in (config if isinstance(config, dict) else config.to_dict()):
        return
    prompt, reply = (Message("user", "Is it so?"),), "It is."
    ours = model.write(model.read([Trajectory(Problem(prompt))], [prompt]), [reply])[0].ids.tolist()
    turns = [{"role": "user", "content": prompt[0].text}, {"role": "assistant", "content": reply}]
    text = words.apply_chat_template(turns, tokenize=False) if words.chat_template else f"{prompt[0].text}\n{reply}"
    theirs = words(text, add_special_tokens=not words.chat_template)["input_ids"]
    if theirs != ours:
        raise RewardlabError(
            f"the reward model {name} reads a conversation as {words.decode(theirs)!r}, and the merge would be read as "
            f"{words.decode(ours)!r}: merge one that scores at the end of the reply's turn, as runs of bradley_terry do"
        )


@torch.no_grad()
def _accuracy(problems: Sequence[Problem], run: Run, model: str) -> float:
    """Of pairs ranked rightly, as the reward model's own tokenizer and template write them."""
    return pair_accuracy(model=model)(problems, replace(run, policy=run.models[model]))["pair_accuracy"]


@measure
def merged_accuracy(problems: Sequence[Problem], run: Run, *, domain: str = "") -> dict[str, float]:
    """pair_accuracy of the merge on held-out pairs of the domain, or on all where none is; 0 before there is a merge. Beside it:

    general: of the reward model alone, w = 1.  grafted: of its head on the language model, w = 0.  rival: the better one of these.
    elsewhere, elsewhere.general: of merge and reward model on the other held-out pairs, where there are some.
    """
    inside = [p for p in problems if re.search(domain, p.question, re.DOTALL)] or problems
    outside = [p for p in problems if p not in inside]
    model, general, expert = run.models[MERGED], run.models[GENERAL], run.models.get(DOMAIN, run.policy)
    # the model of step 0 is no merge, and must not be kept as the best one
    accuracy = _accuracy(inside, run, MERGED) if WEIGHT in run.memory else 0.0
    found = {"pair_accuracy": accuracy, "general": _accuracy(inside, run, GENERAL)}
    if outside:
        found |= {"elsewhere": _accuracy(outside, run, MERGED), "elsewhere.general": _accuracy(outside, run, GENERAL)}
    kept = {name: w.clone() for name, w in model.state().items()}
    try:
        model.load_state(merged(general, expert, 0.0))
        found["grafted"] = _accuracy(inside, run, MERGED)
    finally:
        model.load_state(kept)
    return {**found, "rival": max(found["general"], found["grafted"]), "n": float(len(inside))}


# ---- the recipe ----------------------------------------------------------------------------------------------------------


def dogerm(
    base: Recipe | None = None, *, reward_model: str = "value-head", domain: str = "", weight: float | None = None, grid: int = 20,
    pairs: int | None = None, problems: int = 32, reward_lr: float | None = None, sft_lr: float | None = None,
) -> Recipe:  # fmt: skip
    """reward_model: a checkpoint or run to merge the --model into; or what one starts from that is trained here (`Learner.init`).
    domain: a regular expression of the domain's questions.  weight: of the reward model; None: the best of `grid` + 1.
    pairs: for each parent that is trained here, None: all.  problems: pairs to a step.  reward_lr, sft_lr: of reward and language
    model."""
    base = base or Recipe(name="dogerm", update=Update())
    taught = reward_model.startswith(UNTAUGHT)
    general = Recipe(
        rollout=recorded(fields=("chosen", "rejected")), objective=preference_loss(), update=_update(reward_lr, "scorer")
    )
    expert = Recipe(
        rollout=recorded(fields=("chosen",)), objective=imitate(), weighting=token_mean(), update=_update(sft_lr, "imitation")
    )
    # every=0: the loop alone changes them
    parents = [
        Learner(GENERAL, reward_model, general, every=0),
        *([Learner(DOMAIN, "copy:policy", expert, every=0)] if taught else []),
    ]
    return base.but(
        loop=merge_models(domain=domain, weight=weight, grid=grid, pairs=pairs),
        measure=merged_accuracy(domain=domain),
        # the first is what the run saves
        also=(*base.also, Learner(MERGED, reward_model, general, every=0), *parents),
        problems=problems,
    )


def _update(lr: float | None, kind: Any) -> Update:
    return Update(lr=lr, loss_kind=kind)


fidelity = "whole"
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    rows=[
        {"prompt": "Math: what is 12 + 30?", "chosen": "12 + 30 = 42.", "rejected": "12 + 30 = 32."},
        {"prompt": "Math: what is 9 times 7?", "chosen": "9 times 7 is 63.", "rejected": "9 times 7 is 56."},
        {"prompt": "Name a red fruit.", "chosen": "A ripe cherry is red.", "rejected": "Fruit."},
        {"prompt": "Thank Ann for her help.", "chosen": "Thank you so much, Ann!", "rejected": "It was fine."},
    ],
    settings={"domain": "^Math", "pairs": 2},
)

check = Check(
    says="the merge ranks pairs of a domain better than the reward model, and than its head on the domain's language model",
    versus=None, task="preferences:biased=0.75,error=0.1", measure="pair_accuracy", direction="higher", margin=0.03,
    against="rival", settings={"domain": "Multiply", "pairs": 2000}, problems=600, steps=4,
    judge=Within("elsewhere.general", low=0.6, says="pairs of other questions that the reward model ranks rightly"),
    tried="one run of 2 steps: the merge .55 at w = .15, the reward model .56, its head on the language model .49; elsewhere the "
    "reward model .69 and the merge .52",
    finding="The merge ranks 55% of the domain's pairs right, its better rival 53%; eight runs do not tell them apart.",
)  # fmt: skip
baseline = None
kind = "reward-model"
