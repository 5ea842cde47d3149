"""`rewardlab` with the sampler's log-probs as `old` in every format.

results/real/grpo-smollm2-sums-old-as-drawn.json was made by it.

python benchmarks/_old_as_drawn.py train grpo --model smollm2 ...

In bfloat16 the ratio then compares the sampler's rounding with the trainer's (rewardlab/engine/old_logprobs.py).
"""

from __future__ import annotations

import sys
from typing import Any

from rewardlab.commands.cli import main
from rewardlab.engine import update


def none(*arguments: Any) -> None:
    """No row's `old` is recomputed."""


if __name__ == "__main__":
    update.rows_to_recompute = none
    sys.exit(main(sys.argv[1:]))
