"""Tokens per second of sampling replies: the lean policy against transformers' `generate`, with the same model and prompts.

    fixed     every row samples exactly `max_new` tokens; end tokens are disabled on both sides
    natural   rows end at their end token; the tokens of the replies count, including end tokens

Prompts are tokenised beforehand on both sides. Ours also stores the log-probs of the sampled tokens and decodes the text. It runs
before and after the peer, since a machine's speed drifts within minutes; the mean of the two counts. On a GPU (`rewardlab bench
--device cuda`) vLLM, where it is installed, is a peer too, and the faster peer of each format counts.
"""

from __future__ import annotations

import importlib.util
import itertools
import statistics
from typing import Any

from _sides import DEVICE, Rows, embedded_model, in_own_process, main, matrix_peak, memory_bandwidth, rate_of, row, tidy

FORMATS = ("float32", "bfloat16")
CASES = {
    "generate-embedded": {"fixed": True, "sampled": True},
    "generate-embedded-greedy": {"fixed": True, "sampled": False},
    "generate-embedded-natural": {"fixed": False, "sampled": True},
    "generate-embedded-natural-greedy": {"fixed": False, "sampled": False},
}
OPTIONS = {
    "attention": ("sdpa", "eager"),
    "cache": ("dynamic", "static"),
    "copies": ("repeated prompts", "num_return_sequences"),
}
FINALISTS = 2


def run(
    *, model: str | None = None, problems: int = 16, rollouts: int = 8, max_new: int = 64, repeats: int = 3,
    formats: tuple[str, ...] = FORMATS, cases: tuple[str, ...] = tuple(CASES), options: dict[str, tuple[str, ...]] | None = None,
) -> Rows:  # fmt: skip
    """model: a checkpoint folder (default: the embedded policy's).  formats: number formats; the best one of each side counts.

    options: values of the peer's settings to be tried in every combination, in place of all of OPTIONS.
    """
    shared = {"problems": problems, "rollouts": rollouts, "max_new": max_new, "repeats": repeats}
    given = shared | {"formats": formats, "cases": cases, "model": model or embedded_model()["folder"]}
    before = in_own_process(__file__, "ours", given)
    peer = in_own_process(__file__, "peer", given | {"options": OPTIONS | (options or {})})
    after = in_own_process(__file__, "ours", given)
    ours = {name: [_mean(*both) for both in zip(before[name], after[name], strict=True)] for name in cases}
    if DEVICE != "cpu" and importlib.util.find_spec("vllm"):
        for name, found in in_own_process(__file__, "vllm", given).items():
            peer["cases"][name] += found
    tried = {", ".join(str(x[k]) for k in ("dtype", *OPTIONS)): x["rate"] for x in peer["tried"]}
    return [_row(name, ours[name], peer["cases"][name], shared | {"peer_tried": tried}) for name in cases]


def _mean(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    rates = [before["rate"], after["rate"]]
    return before | {"rate": tidy(statistics.mean(rates)), "rates": rates}


def _row(name: str, ours: list[dict[str, Any]], peer: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    def best(found: list[dict[str, Any]], dtype: str | None = None) -> dict[str, Any]:
        return max((x for x in found if dtype in (None, x["dtype"])), key=lambda x: x["rate"])

    def compared(dtype: str | None = None) -> dict[str, Any]:
        a, b = best(ours, dtype), best(peer, dtype)
        return {"ratio": tidy(a["rate"] / b["rate"]), "ours": a, "peer": b}

    case = {"length": "fixed" if CASES[name]["fixed"] else "natural", "sampled": CASES[name]["sampled"]}
    formats = {"best": compared(), **{dtype: compared(dtype) for dtype in dict.fromkeys(x["dtype"] for x in ours)}}
    return row(name, best(ours)["rate"], best(peer)["rate"], "tokens/s", case | settings | {"by_format": formats})


def ours(
    *, model: str, problems: int, rollouts: int, max_new: int, repeats: int, formats: list[str], cases: list[str]
) -> dict[str, Any]:
    from rewardlab import registry
    from rewardlab.core import Sampling, Trajectory, stream
    from rewardlab.policies.llama.policy import LlamaPolicy

    test = registry.task("arithmetic").test[:problems]
    found: dict[str, Any] = {name: [] for name in cases}
    for dtype, name in itertools.product(formats, cases):
        case = CASES[name]
        policy = LlamaPolicy.load(model, DEVICE, dtype)
        policy.ends = frozenset() if case["fixed"] else policy.ends
        rows = [t for t in policy.read([Trajectory(p) for p in test], [p.prompt for p in test]) for _ in range(rollouts)]
        sampling, seeds = Sampling(max_new, float(case["sampled"])), itertools.count()

        def draw(policy=policy, rows=rows, sampling=sampling, seeds=seeds) -> int:
            done = policy.extend(rows, sampling, stream("bench", next(seeds)))
            return sum(int(t.mask.sum()) for t in done)

        found[name].append({"dtype": dtype} | rate_of(draw, repeats))
    return found


def peer(
    *, repeats: int, formats: list[str], cases: list[str], options: dict[str, Any] | None = None, **given: Any
) -> dict[str, Any]:  # fmt: skip
    """Every combination of options is timed once, sampled at fixed length; the fastest of each format go through all cases."""
    values = OPTIONS | (options or {})
    combinations = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    tried = [_transformers({"dtype": d} | options, "generate-embedded", given, 1) for d in formats for options in combinations]
    fastest = {d: sorted((x for x in tried if x["dtype"] == d), key=lambda x: -x["rate"])[:FINALISTS] for d in formats}
    final = [{k: x[k] for k in ("dtype", *OPTIONS)} for found in fastest.values() for x in found]
    return {"cases": {name: [_transformers(o, name, given, repeats) for o in final] for name in cases}, "tried": tried}


def _transformers(options: dict[str, Any], case: str, given: dict[str, Any], repeats: int) -> dict[str, Any]:
    generator = _Transformers(**options, **given)
    return options | rate_of(lambda: generator.draw(**CASES[case]), repeats)


class _Transformers:
    """A causal LM of transformers with the prompts of the test, padded on the left."""

    def __init__(
        self, *, model: str, problems: int, rollouts: int, max_new: int, dtype: str, attention: str, cache: str, copies: str
    ):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from rewardlab import registry

        tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype), attn_implementation=attention)
        self.model = self.model.to(DEVICE).eval()
        self.end = self.model.generation_config.eos_token_id
        chats = [[{"role": "user", "content": p.question}] for p in registry.task("arithmetic").test[:problems]]
        texts = tokenizer.apply_chat_template(chats, tokenize=False, add_generation_prompt=True)
        self.prompts = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False).to(DEVICE)
        self.rollouts, self.expands = rollouts, copies == "num_return_sequences"
        self.options: dict[str, Any] = {"max_new_tokens": max_new}
        self.options |= {"cache_implementation": "static"} if cache == "static" else {}
        self.seeds = itertools.count()

    def draw(self, fixed: bool, sampled: bool) -> int:
        """`rollouts` replies to each prompt; returns the tokens of the replies."""
        import torch

        # no end token at all: cheaper than the logits processor that min_new_tokens brings in, and it draws from the same policy
        self.model.generation_config.eos_token_id = None if fixed else self.end
        torch.manual_seed(next(self.seeds))
        options = self.options | ({"do_sample": True, "top_k": 0} if sampled else {"do_sample": False})
        prompts = dict(self.prompts)
        if self.expands and sampled:
            options["num_return_sequences"] = self.rollouts
        else:  # greedy search refuses num_return_sequences
            prompts = {k: x.repeat_interleave(self.rollouts, 0) for k, x in prompts.items()}
        with torch.inference_mode():
            ids = self.model.generate(**prompts, **options)[:, prompts["input_ids"].shape[1] :]
        ends = ids == self.end
        return ids.numel() if fixed else int((ends.cumsum(1) - ends.long() == 0).sum())


def vllm(
    *, model: str, problems: int, rollouts: int, max_new: int, repeats: int, formats: list[str], cases: list[str]
) -> dict[str, Any]:
    """The same by vLLM (Kwon et al. 2023, arXiv:2309.06180), which records CUDA graphs before it is timed."""
    import vllm as library
    from transformers import AutoTokenizer

    from rewardlab import registry

    tokenizer = AutoTokenizer.from_pretrained(model)
    chats = [[{"role": "user", "content": p.question}] for p in registry.task("arithmetic").test[:problems]]
    texts = tokenizer.apply_chat_template(chats, tokenize=False, add_generation_prompt=True)
    prompts = [{"prompt_token_ids": ids} for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    found: dict[str, Any] = {name: [] for name in cases}
    for dtype in formats:
        # the rest of the memory belongs to whatever runs beside it
        engine = library.LLM(model=model, dtype=dtype, gpu_memory_utilization=0.5, disable_log_stats=True)
        for name in cases:
            case = CASES[name]
            asked = prompts if case["sampled"] else [p for p in prompts for _ in range(rollouts)]
            copies = rollouts if case["sampled"] else 1
            sampling = library.SamplingParams(
                n=copies, temperature=float(case["sampled"]), max_tokens=max_new, ignore_eos=case["fixed"]
            )

            def draw(engine=engine, asked=asked, sampling=sampling) -> int:
                done = engine.generate(asked, sampling, use_tqdm=False)
                return sum(len(reply.token_ids) for request in done for reply in request.outputs)

            found[name].append({"dtype": dtype, "library": f"vllm {library.__version__}"} | rate_of(draw, repeats))
        del engine
    return found


if __name__ == "__main__":
    main(run, {"ours": ours, "peer": peer, "vllm": vllm, "matrix_peak": matrix_peak, "memory_bandwidth": memory_bandwidth})
