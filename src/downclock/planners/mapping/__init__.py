"""CPU-GPU mapping (liu): static, dynamic, aggressive, ERF, and replanning."""
