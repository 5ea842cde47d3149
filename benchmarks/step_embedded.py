"""One step of GRPO from end to end (sample, score, train): the embedded trainer against TRL's GRPOTrainer.

Same model, problems, verifier, loss, optimiser, lengths and number format: weights in float32, and the matrix products in the
format named. The learning rate is so small that both sides stay at one policy, whose replies end where they end. Times run
from the end of a step to the end of the next; the first step does not count. A machine's speed drifts within minutes: ours runs
before and after the peer, and the mean of the two counts; of the peer the better of two. The first row is of the format in
which the peer is faster, the second of the other one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

from _sides import DEVICE, Rows, embedded_model, in_own_process, main, matrix_peak, memory, row, settled, tidy

FORMATS = ("float32", "bfloat16")
LR = 1e-6
FIRST = {"micro_batches": 1, "attention": "sdpa", "cache": "dynamic", "checkpointing": False}
OTHER = {"micro_batches": 4, "attention": "eager", "cache": "static", "checkpointing": True}


def run(
    *, model: str | None = None, problems: int = 16, rollouts: int = 8, max_new: int = 64, repeats: int = 3,
    formats: tuple[str, ...] = FORMATS, sizes: tuple[int, ...] = (1024, 2048, 4096), options: dict[str, Any] | None = None,
    name: str = "step-embedded",
) -> Rows:  # fmt: skip
    """model: a checkpoint folder (default: the embedded policy's).  sizes: of the products that show the machine's peak.

    options: the peer's (default: the fastest that a search finds).
    """
    shared = {"problems": problems, "rollouts": rollouts, "max_new": max_new, "repeats": repeats}
    given = shared | {"model": model or embedded_model()["folder"]}
    rows = [_compare(name, given | {"dtype": dtype}, sizes, options) for dtype in formats]
    rows.sort(key=lambda x: x["peer"])
    rows[0]["name"] = name
    return [x | {"settings": shared | x["settings"]} for x in rows]


def _compare(name: str, given: dict[str, Any], sizes: tuple[int, ...], options: dict[str, Any] | None) -> dict[str, Any]:
    before = in_own_process(__file__, "ours", given)
    tried = [] if options else in_own_process(__file__, "search", given)
    ran = sorted((x for x in tried if "seconds" in x), key=lambda x: x["seconds"])
    options = options or ran[0]["options"]
    peer = in_own_process(__file__, "peer", given | {"options": options})
    # the peer gets the better of its two times: in a fresh process, and in the one that tried other options before
    peer["seconds"] = min(x["seconds"] for x in (peer, *ran[:1]))
    after = in_own_process(__file__, "ours", given)
    ours = after | {name: tidy(statistics.mean((before[name], after[name]))) for name in ("seconds", "training_gflop_per_s")}
    ours["seconds_each"] = [before["seconds"], after["seconds"]]
    peak = in_own_process(__file__, "matrix_peak", {"dtype": given["dtype"], "sizes": sizes})
    ours |= {"matrix_peak_gflop_per_s": tidy(peak), "share_of_matrix_peak": tidy(ours["training_gflop_per_s"] / peak)}
    words = {", ".join(f"{k} {v}" for k, v in x["options"].items()): x.get("seconds", x.get("error")) for x in tried}
    settings = {"dtype": given["dtype"], "ours": ours, "peer": peer | {"options": options}, "peer_tried": words}
    return row(f"{name}-{given['dtype']}", ours["seconds"], peer["seconds"], "s/step", settings)


# ---- ours ------------------------------------------------------------------------------------------------------------


def ours(
    *, model: str, dtype: str, problems: int, rollouts: int, max_new: int, repeats: int, sampler: str | None = None
) -> dict[str, Any]:  # fmt: skip
    """sampler: what samples in the policy's place, as `train --sampler` has it."""
    from rewardlab import registry
    from rewardlab.core import Run
    from rewardlab.engine.step import Ops, standard_loop
    from rewardlab.policies.llama.policy import LlamaPolicy
    from rewardlab.runs.config import RunConfig

    policy, task = LlamaPolicy.load(model, DEVICE, dtype), registry.task("arithmetic")
    if sampler:
        from rewardlab.policies.vllm.sampler import sampler_of

        policy.sampler = sampler_of(sampler, policy)
    recipe = registry.build("grpo", {"n": rollouts}).but(problems=problems, lr=LR)
    run = Run(policy, steps=1 + repeats, max_new=max_new, verify=registry.part("reward", task.verifier))
    ops = Ops(recipe, run, task, RunConfig())
    held, steps = memory(), []
    while run.step < run.steps:
        start, ops.seconds = time.perf_counter(), {}
        standard_loop(recipe, run, ops)
        run.step += 1
        settled()
        seconds = time.perf_counter() - start
        assert ops.step_data is not None
        batch = ops.step_data.batch
        decided = int(batch.mask.sum())
        begins = batch.mask.int().argmax(1)
        begins[batch.first_rows] = 0
        flops = training_flops(policy.model.shape, batch.length.tolist(), begins.tolist(), decided)
        speed = flops / ops.seconds["train"] / 1e9
        steps.append({"seconds": seconds, **ops.seconds, "reply_tokens": decided, "training_gflop_per_s": speed})
    return _summary(steps) | _memory(held)


def training_flops(shape: Any, lengths: list[int], common: list[int], decided: int) -> float:
    """FLOPs of one forward and backward pass, the backward pass counted as twice the forward one; nothing recomputed counts.

    6 x the weights of the layers' matrices x real tokens (replies, and the prompt of each group once), 6 x the weights of the head
    x reply tokens (the only ones whose logits are needed), and the two products of causal attention. The embedding look-up counts
    nothing.  common: how many leading tokens of each row were computed for the row before it.
    """
    s = shape
    layer = s.hidden * (s.heads + 2 * s.kv_heads) * s.head_dim + s.heads * s.head_dim * s.hidden + 3 * s.hidden * s.mlp
    attention = 6.0 * s.layers * s.heads * s.head_dim * sum(n * n - c * c for n, c in zip(lengths, common, strict=True))
    return 6.0 * (s.layers * layer * (sum(lengths) - sum(common)) + s.vocab * s.hidden * decided) + attention


def _summary(steps: list[dict[str, float]]) -> dict[str, float]:
    """Medians over the steps, without the first one (warm-up)."""
    return {name: tidy(statistics.median(step[name] for step in steps[1:])) for name in steps[0]}


def _memory(held: float) -> dict[str, float]:
    """Peak memory in MiB, and its growth during the steps; libraries and model take the rest."""
    return {"peak_mib": round(memory()), "peak_mib_of_steps": round(memory() - held)}


# ---- TRL -------------------------------------------------------------------------------------------------------------


def search(**given: Any) -> list[dict[str, Any]]:
    """One option changed at a time, kept if it makes the step faster."""
    best = _tried(FIRST, given)
    tried = [best]
    for name, value in OTHER.items():
        tried.append(_tried(best["options"] | {name: value}, given))
        best = min((x for x in tried if "seconds" in x), key=lambda x: x["seconds"])
    return tried


def _tried(options: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"options": options, "seconds": peer(**given | {"options": options, "repeats": 1})["seconds"]}
    except RuntimeError as e:  # not every option runs in every format: a static cache refuses autocast
        return {"options": options, "error": f"does not run: {e}"}


def peer(
    *, model: str, dtype: str, problems: int, rollouts: int, max_new: int, repeats: int, options: dict[str, Any]
) -> dict[str, Any]:
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    from rewardlab import registry

    reward: Any = _verified
    train = registry.task("arithmetic").train
    asked = [train[i] for i in range(problems * (1 + repeats))]
    table = [{"prompt": [{"role": "user", "content": p.question}], "answer": p.answer} for p in asked]
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32, attn_implementation=options["attention"]),
            reward_funcs=reward,
            args=GRPOConfig(output_dir=folder, **_config(dtype, problems, rollouts, max_new, 1 + repeats, options)),
            train_dataset=Dataset.from_list(table),
            processing_class=AutoTokenizer.from_pretrained(model),
        )
        clock = _clocked(trainer)
        held = memory()
        trainer.train()
    return _summary(clock.steps) | _memory(held)


def _config(dtype: str, problems: int, rollouts: int, max_new: int, steps: int, options: dict[str, Any]) -> dict[str, Any]:
    parts = options["micro_batches"]
    return {
        "max_steps": steps, "num_generations": rollouts, "max_completion_length": max_new, "use_cpu": DEVICE == "cpu",
        "per_device_train_batch_size": problems * rollouts // parts, "gradient_accumulation_steps": parts,
        "gradient_checkpointing": options["checkpointing"], "bf16": dtype == "bfloat16", "shuffle_dataset": False,
        "cache_implementation": "static" if options["cache"] == "static" else None, "loss_type": "grpo", "beta": 0.0,
        "learning_rate": LR, "lr_scheduler_type": "constant", "optim": "adamw_torch_fused", "adam_beta2": 0.99,
        "max_grad_norm": 1.0, "save_strategy": "no", "logging_strategy": "no", "report_to": "none", "disable_tqdm": True,
        "dataloader_pin_memory": DEVICE != "cpu", **({"use_vllm": True, "vllm_mode": "colocate"} if options.get("vllm") else {}),
    }  # fmt: skip


def _verified(prompts: list[Any], completions: list[Any], completion_ids: list[Any], answer: list[str], **rest: Any) -> list[float]:
    """The same verifier as ours, as TRL calls rewards."""
    import numpy as np

    from rewardlab import registry
    from rewardlab.core import Trajectory, Turn, ask

    replies = zip(prompts, completions, completion_ids, answer, strict=True)
    rows = [
        Trajectory(ask(p[0]["content"], a), (Turn("policy", np.asarray(ids), text=c[0]["content"]),)) for p, c, ids, a in replies
    ]
    return [score.value or 0.0 for score in registry.part("reward", "final_number")([rows], None)[0]]


def _clocked(trainer: Any) -> Any:
    """A callback that keeps, for every step, its seconds, those of drawing among them, and the tokens drawn."""
    from transformers import TrainerCallback

    draw, drawing = trainer._generate, {"generate": 0.0, "reply_tokens": 0.0}

    def clocked_draw(prompts: Any) -> Any:
        start = time.perf_counter()
        drawn = draw(prompts)
        drawing["generate"] = time.perf_counter() - start
        drawing["reply_tokens"] = float(sum(len(ids) for ids in drawn[1]))
        return drawn

    class Clock(TrainerCallback):
        steps: list[dict[str, float]]

        def on_train_begin(self, *given: Any, **rest: Any) -> None:
            self.steps, self.last = [], time.perf_counter()

        def on_step_end(self, *given: Any, **rest: Any) -> None:
            settled()
            now = time.perf_counter()
            self.steps.append({"seconds": now - self.last, **drawing})
            self.last = now

    trainer._generate = clocked_draw
    clock = Clock()
    trainer.add_callback(clock)
    return clock


if __name__ == "__main__":
    main(run, {"ours": ours, "search": search, "peer": peer, "matrix_peak": matrix_peak})
