"""Which formula answers for a row of curves in compiled kernels."""

NOWHERE, GPU, CPU, LADDER = 0, 1, 2, 3
"""None (the task cannot run there); three-variable GPU model; CPU core; enumerated clocks."""
