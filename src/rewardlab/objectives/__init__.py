"""Objectives compute a loss per token, row or group from the credit; weightings weight these losses in the sum."""
