"""Method files outside the package, for tests."""

from pathlib import Path

ALPHA = '''"""Alpha: scale what was earned.

    A = by * r

Doe et al. 2031, arXiv:3101.00001. The scale is the paper's.
"""
from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe, credit, objective
from rewardlab.rewards.reward import reward

@credit
def scaled(a, batch, run, *, by=2.0): return by * a

@objective
def plain(out, batch, run): return -out.logprobs

@reward
def length(trajectory): return float(len(trajectory.reply))

def alpha(base=None, *, by=2.0, group_size=4, style="terse", eps: float = 1):
    base = base or Recipe(name="alpha", objective=plain(), reward=length())
    return base.but(credit=scaled(by=by))

claim = None
'''
BETA = '''"""Beta: whiten after scaling."""
from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe, credit
from rewardlab.credit.group import center

def beta_2(base=None, *, by=1.0, weight=0.5):
    base = base or Recipe(name="beta_2")
    return base.but(credit=base.credit >> center() if base.credit else center(), lr=weight)

claim = Claim(says="beats alpha", versus="alpha", task="arithmetic", measure="pass@1", direction="higher", margin=0.1)
kind = "analysis"
'''


def write(root: Path, folder: str, name: str, text: str) -> Path:
    (root / folder).mkdir(exist_ok=True)
    path = root / folder / f"{name}.py"
    path.write_text(text)
    return path
