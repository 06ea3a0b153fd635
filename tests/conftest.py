"""What all tests share: generated examples are judged by what happens, not by how long it takes."""

import pytest
from hypothesis import HealthCheck, settings

# Speed is measured in `bench/`. On a loaded machine a right example takes longer than 200 ms now
# and then, and drawing examples takes longer than Hypothesis expects.
settings.register_profile("aftercall", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("aftercall")

NO_CHROMIUM = (
    "Chromium is not installed: the dashboard was not looked at in a browser "
    "(`apt-get install chromium`, or name one in CHROMIUM)"
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once what was not tested."""
    skipped = terminalreporter.getreports("skipped")
    without = sum(NO_CHROMIUM in str(each.longrepr) for each in skipped)
    if without:
        terminalreporter.section("not tested")
        terminalreporter.line(f"{without} tests: {NO_CHROMIUM}")
