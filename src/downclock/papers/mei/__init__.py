"""What the experiments of mei2021 and mei2017 share: one verified run, and its numbers."""
