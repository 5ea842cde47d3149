"""What runs in the sandbox's own processes. Nothing here imports rewardlab: a worker loads these modules and Python's library."""
