"""rewardlab from Python: load, train, resume, evaluate, answer, export.

from rewardlab import build, train

recipe = build("grpo", {"n": 16})
result = train(recipe, task="arithmetic", steps=50)
print(result.summary["before"], result.summary["after"])
"""

from .training import Result, answer, evaluate, export, plan, resume, train, versions

__all__ = ["Result", "answer", "evaluate", "export", "plan", "resume", "train", "versions"]
