"""Child processes: functions called in them under a time limit (`pool.py`, `forked.py`), by one supervisor (`supervisor.py`)."""
