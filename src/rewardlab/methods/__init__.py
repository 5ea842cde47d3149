"""Published systems, one file each; `rewardlab.registry` finds and loads them."""
