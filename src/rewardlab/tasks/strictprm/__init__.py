"""StrictPRMBench: recorded solutions of a real model, with the step scores of real process reward models."""
