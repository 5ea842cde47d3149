"""One step of GRPO from end to end with SmolLM2-135M-Instruct in bfloat16: the embedded trainer against TRL's GRPOTrainer.

As step_embedded, with fewer prompts.
"""

from __future__ import annotations

from typing import Any

import step_embedded
from _sides import Rows, main, smollm2_model


def run(
    *, model: str | None = None, problems: int = 8, rollouts: int = 8, max_new: int = 64, repeats: int = 3,
    sizes: tuple[int, ...] = (1024, 2048, 4096), options: dict[str, Any] | None = None,
) -> Rows:  # fmt: skip
    """model: a checkpoint folder (default: SmolLM2's); the rest as in step_embedded."""
    return step_embedded.run(
        model=model or smollm2_model(), problems=problems, rollouts=rollouts, max_new=max_new, repeats=repeats,
        formats=("bfloat16",), sizes=sizes, options=options, name="step-smollm2",
    )  # fmt: skip


if __name__ == "__main__":
    main(run, {})
