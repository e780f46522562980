"""Published numbers of mei2017 (section V); energies in GJ, true joules."""

from __future__ import annotations

SINGLE_SAVING = 38.0
"""Percent saved on a single task in the wide interval: the bound of section V-E (Fig. 3)."""

RUN = {"without DVFS": 11.03, "with DVFS": 7.05}
"""Run energy (sections V-C, V-D; Fig. 4)."""

RUN_SAVING = 36.8
"""Percent, as printed (section V-D); 11.03 and 7.05 give 36.1."""

TOTAL_L1 = {"least": 7.08, "most": 7.12}
"""Totals with DVFS at l = 1; "bin-packing is slightly better" (section V-D)."""

TOTAL_L16 = {"edl theta=0.9": 8.51, "bin": 9.92, "edl theta=1": 10.57}
"""Totals with DVFS at l = 16 (section V-D; Fig. 4)."""

TOTAL_L16_LATER = {"edl theta=1": 10.58, "edl theta=0.95": 8.51}
"""The same in section V-E (Fig. 6)."""

IDLE_L16 = {"edl without DVFS": 1.13, "edl theta=1": 1.89, "edl theta=0.9": 1.45}
"""Idle energy at l = 16 (section V-D; Fig. 5); section V-E prints 3.5 for theta = 1."""

IDLE_L16_LATER = {"edl theta=1": 3.5, "edl theta=0.95": 1.45}
"""Idle energy at l = 16 as section V-E prints it (Fig. 6)."""

IDLE_L1 = 0.03
"""Idle energy without DVFS, the least over l (section V-C)."""

IDLE_BIN = 0.22
"""What DVFS adds to the idle energy of bin packing at l = 16 (section V-D)."""

OVERHEAD_MJ = {"l=16": 8.32, "l=1": 8.78}
"""Turn-on energy without DVFS, least and most; it falls as l grows (section V-C)."""

REDUCTION = {"l=16": 30.0, "l=1": 36.0}
"""Percent of total energy saved with a good theta, over all l (section V-E; Fig. 7)."""
