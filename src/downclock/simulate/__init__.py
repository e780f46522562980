"""The engine under a virtual clock: real run times, faults, promised and realised schedules."""
