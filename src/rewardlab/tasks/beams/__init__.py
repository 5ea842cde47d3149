"""Beams on two supports, and what these bear."""
