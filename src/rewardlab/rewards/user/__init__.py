"""Rewards that a user wrote: found, called in the manner that they are written in, and made rewards."""
