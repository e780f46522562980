"""The report: one HTML file that needs nothing else, to look at and to take to a meeting."""

from __future__ import annotations

from downclock.report.page.write import report_html, write_report

__all__ = ["report_html", "write_report"]
