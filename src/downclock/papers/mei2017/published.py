"""Published numbers of mei2017 (section V); energies in GJ, true joules."""

from __future__ import annotations

SINGLE_SAVING = 38.0
"""Percent saved on a single task in the wide interval: the bound of section V-E (Fig. 3)."""

RUN = {"without DVFS": 11.03, "with DVFS": 7.05}
"""Run energy (sections V-C, V-D; Fig. 4)."""

RUN_SAVING = 36.8
"""Percent, as printed (section V-D); 11.03 and 7.05 give 36.1."""

TOTAL_L16 = {"edl theta=0.9": 8.51, "bin": 9.92, "edl theta=1": 10.57}
"""Totals with DVFS at l = 16 (section V-D; Fig. 4)."""

IDLE_L16 = {"edl without DVFS": 1.13, "edl theta=1": 1.89, "edl theta=0.9": 1.45}
"""Idle energy at l = 16 (section V-D; Fig. 5); section V-E prints 3.5 for theta = 1."""

IDLE_L16_LATER = 3.5
"""Idle energy of theta = 1 at l = 16 as section V-E prints it (Fig. 6)."""

OVERHEAD_MJ = {"least": 8.32, "most": 8.78}
"""Turn-on energy without DVFS over all l, in MJ (section V-C)."""

REDUCTION = {"least": 30.0, "most": 36.0}
"""Percent of total energy saved with a good theta, over all l (section V-E; Fig. 7)."""
