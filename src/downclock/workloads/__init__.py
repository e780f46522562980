"""WHERE PROBLEMS COME FROM: the papers' generators and readers of foreign formats."""
