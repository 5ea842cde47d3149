"""Objectives compute a loss per token, row or group from the credit; weightings weigh these losses in the sum."""
