"""Task graphs in slots under prices (gerhards): cuts, proofs, the printed program."""
