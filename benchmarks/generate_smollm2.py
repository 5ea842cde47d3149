"""Tokens per second of sampling replies with SmolLM2-135M-Instruct in bfloat16: the lean policy against transformers' `generate`.

As generate_embedded, at fixed length, and one sampled reply alone (`_one_stream.py` compares it with vLLM and OpenVINO). A step
reads every weight once: the report states the share of memory bandwidth that this takes, and the share of the processor's peak in
matrix products that the steps reach.
"""

from __future__ import annotations

from pathlib import Path

import generate_embedded
from _sides import Rows, in_own_process, main, smollm2_model, tidy

SAMPLED = "generate-embedded"
CASES = {"generate-embedded": "generate-smollm2", "generate-embedded-greedy": "generate-smollm2-greedy"}


def run(
    *, model: str | None = None, problems: int = 8, rollouts: int = 8, max_new: int = 64, repeats: int = 3,
    sizes: tuple[int, ...] = (1024, 2048, 4096), options: dict[str, tuple[str, ...]] | None = None,
) -> Rows:  # fmt: skip
    """model: a checkpoint folder (default: SmolLM2's).  sizes: of the products that show the machine's peak.

    options: the peer's, as in generate_embedded.
    """
    folder = model or smollm2_model()
    rows = generate_embedded.run(
        model=folder, problems=problems, rollouts=rollouts, max_new=max_new, repeats=repeats,
        formats=("bfloat16",), cases=tuple(CASES), options=options,
    )  # fmt: skip
    for x in rows:
        x["name"] = CASES[x["name"]]
    (stream,) = generate_embedded.run(
        model=folder, problems=1, rollouts=1, max_new=max_new, repeats=repeats, formats=("bfloat16",), cases=(SAMPLED,),
        options=options,
    )  # fmt: skip
    rows.append({**stream, "name": "generate-smollm2-one-stream"})
    weights = weights_of(folder)
    bandwidth = in_own_process(generate_embedded.__file__, "memory_bandwidth", {})
    peak = in_own_process(generate_embedded.__file__, "matrix_peak", {"dtype": "bfloat16", "sizes": sizes})
    for x in rows:
        steps = x["ours"] / (x["settings"]["problems"] * x["settings"]["rollouts"])
        x["settings"] |= {
            "weights": weights,
            "memory_gb_per_s": tidy(bandwidth),
            "share_of_memory_bandwidth": tidy(steps * weights * 2e-9 / bandwidth),
            "matrix_peak_gflop_per_s": tidy(peak),
            "share_of_matrix_peak": tidy(x["ours"] * weights * 2e-9 / peak),
        }
    return rows


def weights_of(folder: str) -> int:
    """Number of parameters in the checkpoint; the embedding, which is also the head, counts once."""
    from safetensors import safe_open

    with safe_open(Path(folder) / "model.safetensors", "pt") as file:
        return sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118 - a file is no mapping


if __name__ == "__main__":
    main(run, {})
