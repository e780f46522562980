"""The papers' list policies as sentences of small parts: order, fit, lengths, sleep."""
