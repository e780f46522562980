"""A seeded fuzzer of every input format: small valid files, mutated, read, planned and judged.

- ``worlds``: small valid files, as plain data.
- ``trees``: odd values, and mutations of plain data (objects may have a key twice).
- ``encodings``: plain data as JSON, TOML, CSV and Parquet, and damage to bytes.
- ``judge``: what counts as a failure.
- ``formats``: one function a format: mutate, write, read, judge.
- ``python -m tests.fuzz``: many inputs, or the one of a seed.
"""
