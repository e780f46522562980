"""How fast, how large, how close: measured claims. `python -m benchmarks` runs them all."""
