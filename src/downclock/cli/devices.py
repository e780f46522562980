"""``downclock devices``: what this machine has, and what may be set."""

from __future__ import annotations

from downclock.cli import options


@options.command("devices")
@options.result_file
@options.form
def command(session: options.Session) -> None:
    """Show this machine's GPUs and CPUs and what may be set.

    Clocks that may be locked, power limits, energy counters, and who may set them from here: root,
    zeusd where it runs, or nobody. Sets nothing.

    Example:
      downclock devices --format json
    """
    from downclock.adapters.devices.machine import devices
    from downclock.report.devices import devices_page

    with session.working("asking the devices"):
        page = devices_page(*devices())
    session.show(page)
