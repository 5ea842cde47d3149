"""`rewardlab` with `old` as it was drawn in every format: what results/real/grpo-smollm2-sums-old-as-drawn.json was made by.

python benchmarks/_old_as_drawn.py train grpo --model smollm2 ...

In bfloat16 the ratio then compares drawing's rounding with training's (docs/ARCHITECTURE.md, "Rounded formats").
"""

from __future__ import annotations

import sys
from typing import Any

from rewardlab.commands.cli import main
from rewardlab.core import Batch
from rewardlab.engine import update


def as_drawn(learning: Any, batch: Batch, *rest: Any) -> Batch:
    return batch


if __name__ == "__main__":
    update.with_own_old = as_drawn
    sys.exit(main(sys.argv[1:]))
