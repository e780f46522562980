"""Hot loops: arrays in, arrays out. numpy and numba only, no types of ours.

Compiled by numba where it is installed; the same code runs without it, slower.
"""
