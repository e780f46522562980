"""Slurm as a world: facts read from its commands, decisions carried out on waiting jobs."""
