"""Charts of patients, of which a few values tell the risk and others only go along with it."""
