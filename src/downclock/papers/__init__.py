"""The papers: one folder each, with its experiments, published numbers and verdicts."""
