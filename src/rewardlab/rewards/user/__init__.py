"""User-written rewards: found, called by their own convention, and wrapped as rewards."""
