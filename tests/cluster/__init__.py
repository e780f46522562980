"""Tests against a real Slurm on loopback."""
