"""A report as the JSON that `diagnose --json` promises."""

import json

from necroscope.analysis.report import Report


def report_to_json(report: Report) -> str:
    """ASCII only: names from the machine cannot steer whoever prints it."""
    return json.dumps(report.as_json(), ensure_ascii=True)
