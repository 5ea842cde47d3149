"""What runs in the sandbox's own processes. Nothing here imports rewardlab: these modules are all that a lane ever loads."""
