"""Numbers printed in gerhards: sections 3 and 5."""

from __future__ import annotations

BEST_CLOCK_HALF_STATIC = 0.825
"""Section 3: the minimum of s/f + (1-s) f² for s = 0.5, "approximately"."""

SAVING_AT_ZERO = 4.6
"""Section 5, Fig. 2: percent saved over the original schedule without extension."""

STEEPER_UNTIL = 20
"""Section 5: percent of extension up to which the saving grows faster."""

SAVING_STATIC = 4.0
"""Section 5: percent saved at 20 % extension with power 0.4 + 0.6 f³."""

LOSS = {
    ("flat", 5): 10.0,
    ("increasing", 5): 13.0,
    ("epex", 5): 15.0,
    ("epex", 20): 17.0,
    ("alternating", 5): 30.0,
}
"""Section 5: percent the heuristic costs more than the program, by curve and extension."""

LOSS_BY_TIMEOUT = {"8 minutes": 17.1, "4 hours": 17.6}
"""Section 5: the same at 20 %, by the time CPLEX was given."""

TIMED_OUT = 50.0
"""Section 5: percent of the cases ("about half") that time out after 4 hours."""

SECONDS = 1.0
"""Section 5: "the heuristic usually required less than one second"."""

VERY_CLOSE = 1.0
"""Percent that we take for "always very close to each other" (section 5, sweep and binary)."""
