"""Devices of one machine: what they have, setting and resetting their clocks, measuring them.

- ``device``: what every device is asked, whoever made it; settings and their undoing.
- ``nvml``, ``amd``, ``cpu``: the makers' ways; ``zeusd``: a daemon that sets for us; ``machine``:
  all there is.
- ``meter``: energy by the hardware's counter, else by the trapezoid of sampled power.
- ``state``: what is set now, kept so that whoever comes after a crash can undo it.
- ``slurm_job``, ``agent``: Slurm's Prolog and Epilog: lock, measure, reset, spool.
- ``sweep``: run a command at many settings; ``guardian``: resets when the sweep is killed.
- ``fakes``: a fake NVML library for machines without GPUs.

The agent runs at the start and end of every job: nothing on its path imports numpy.
"""
