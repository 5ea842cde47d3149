"""python -m rewardlab"""

import sys

from .cli import main

sys.exit(main())
