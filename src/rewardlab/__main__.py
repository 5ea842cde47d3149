"""python -m rewardlab"""

import sys

from rewardlab.commands.cli import main

sys.exit(main())
