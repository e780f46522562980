"""Runs and their comparison: plans beside baselines and bounds, many policies, simulated runs.

What comes out are plain values; `downclock.report` makes pages and figures of them.
"""
