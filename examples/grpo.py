"""GRPO in one file: sample, score, advantage, loss, step. Read it from top to bottom.

    python examples/grpo.py --steps 20

A small language model solves chains of arithmetic ("Start with 7. Add 5. Multiply by 3."). For every problem it writes several
replies; replies that are right more often than their neighbours become more likely. That is all of GRPO (Shao et al. 2024,
arXiv:2402.03300). Sampling and the transformer come from rewardlab; the algorithm is here, and nothing of the engine is used.

Shapes: P problems a step, n replies to each, B = P * n rows, T the longest row in tokens (prompt and reply).
Left out, since one update on fresh samples on one machine needs none of it: micro-batches, a reference model with its KL penalty,
several epochs per batch, checkpoints. `rewardlab train grpo` has them, and a test holds its gradient equal to this one.
"""

import argparse
import re
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Problem, Sampling, Trajectory
from rewardlab.models.load import load_policy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.tasks.arithmetic import arithmetic

EPS = 0.2  # how far a probability may move from its old value in one update


def sample(policy: LlamaPolicy, problems: list[Problem], n: int, rng: torch.Generator) -> list[Trajectory]:
    """n replies to each problem, side by side: rows 0 .. n-1 belong to problem 0, the next n to problem 1 ..."""
    prompts = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])  # applies the chat template
    return policy.extend([t for t in prompts for _ in range(n)], Sampling(max_new=64, temperature=1.0), rng)


def score(trajectory: Trajectory) -> float:
    """1 if the number after the last "Answer:" is the gold answer, else 0. Nothing else is rewarded: no steps, no format."""
    answers = re.findall(r"Answer: (-?\d+)", trajectory.reply)
    return float(bool(answers) and answers[-1] == trajectory.problem.answer)


def advantages(rewards: Tensor) -> Tensor:
    """(P, n) -> (P, n): how much better a reply is than the other replies to the same problem.

    The group's mean takes the place of a critic. Where all n replies are right, or all wrong, there is nothing to compare: 0.
    """
    mean, std = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
    return (rewards - mean) / (std + 1e-4)


def collate(rows: list[Trajectory]) -> tuple[Tensor, Tensor, Tensor]:
    """ids (B, T) padded on the right, mask (B, T) True at sampled tokens, old (B, T) their log-probs when they were sampled."""
    ids, mask, old = (
        torch.nn.utils.rnn.pad_sequence([torch.as_tensor(x) for x in column], batch_first=True)
        for column in zip(*((t.ids, t.mask, t.column("logprobs", missing=0.0)) for t in rows), strict=True)
    )
    return ids, mask, old


def token_logprobs(policy: LlamaPolicy, ids: Tensor) -> Tensor:
    """(B, T): log p(ids[:, t] | ids[:, :t]), with gradient; 0 at t = 0, which nothing predicts."""
    B, T = ids.shape

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # q (B*T, heads, d); k, v may have fewer heads
        q, k, v = (x.view(B, T, -1, x.shape[-1]).transpose(1, 2) for x in (q, k, v))  # (B, heads, T, d)
        # causal attention never looks right, so padding on the right needs no mask
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return out.transpose(1, 2).flatten(0, 1)  # (B*T, heads, d)

    weights, positions = policy.weights(), torch.arange(T, device=ids.device).repeat(B)
    hidden = policy.model.trunk(weights, ids.flatten(), positions, attend)  # (B*T, hidden)
    logits = (hidden @ weights.head.T).float().view(B, T, -1)  # (B, T, vocabulary)
    # the logits at position t-1 predict the token at position t
    predicted = logits[:, :-1].log_softmax(-1).gather(2, ids[:, 1:, None]).squeeze(2)  # (B, T-1)
    return F.pad(predicted, (1, 0))


def grpo_loss(policy: LlamaPolicy, ids: Tensor, mask: Tensor, old: Tensor, advantage: Tensor) -> Tensor:
    """A scalar; advantage (B,): every token of a reply gets the advantage of the reply."""
    ratio = (token_logprobs(policy, ids) - old).exp()  # (B, T): 1 before the first update on these samples
    A = advantage[:, None]
    # PPO's clip: no gain from moving a probability further than EPS, but every loss from it counts
    gain = torch.minimum(ratio * A, ratio.clamp(1 - EPS, 1 + EPS) * A)
    # first the mean over a reply's own tokens, then over replies: each reply weighs the same, however long it is
    per_reply = (gain * mask).sum(1) / mask.sum(1).clamp(min=1)
    return -per_reply.mean()


def accuracy(policy: LlamaPolicy, problems: list[Problem]) -> float:
    """The share of problems that one sampled reply solves; the seed is fixed, so before and after share their random numbers."""
    rows = sample(policy, problems, 1, torch.Generator().manual_seed(0))
    return sum(map(score, rows)) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="GRPO on arithmetic, in one file.")
    parser.add_argument("--steps", type=int, default=100, help="updates of the policy")
    parser.add_argument("--problems", type=int, default=16, help="problems per update (P)")
    parser.add_argument("--n", type=int, default=8, help="replies to each problem")
    parser.add_argument("--lr", type=float, default=3e-4, help="learning rate of AdamW")
    parser.add_argument("--model", default="embedded", help="'embedded', or the folder of a Llama-family checkpoint")
    parser.add_argument("--seed", type=int, default=0, help="of the sampled replies")
    args = parser.parse_args()

    task = arithmetic()
    policy = load_policy(args.model, task=task)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=args.lr, betas=(0.9, 0.99), weight_decay=0.0)
    rng = torch.Generator().manual_seed(args.seed)
    held_out = task.test[:200]  # never trained on: a hash of the prompt decides which set a problem is in
    print(f"held-out accuracy before: {accuracy(policy, held_out):.3f}")

    for step in range(args.steps):
        start = time.perf_counter()
        problems = [task.train[step * args.problems + i] for i in range(args.problems)]
        rows = sample(policy, problems, args.n, rng)  # B rows
        rewards = torch.tensor([score(t) for t in rows]).view(args.problems, args.n)  # (P, n)
        ids, mask, old = (x.to(policy.device) for x in collate(rows))  # (B, T)

        optimiser.zero_grad()
        loss = grpo_loss(policy, ids, mask, old, advantages(rewards).flatten().to(policy.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()

        # groups whose replies differ in reward are the only ones that teach anything
        mixed, length = float((rewards.std(1) > 0).float().mean()), float(mask.sum() / len(rows))
        seconds = time.perf_counter() - start
        print(f"step {step + 1:3}  reward {rewards.mean():.3f}  mixed groups {mixed:.2f}  tokens {length:.1f}  {seconds:.1f} s")

    print(f"held-out accuracy after: {accuracy(policy, held_out):.3f}")


if __name__ == "__main__":
    main()
