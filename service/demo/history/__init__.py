"""A made-up history: simulated agents, simulated tools, real refusals and real repairs.

    async with in_process() as client:
        report = await play_history(client, calls_per_day=50)

docs/demo-history.md tells what is in it.
"""

from service.demo.history.alone import executions_alone, sessions_alone
from service.demo.history.play import HistoryProgress, play_history
from service.demo.history.report import HistoryReport, StageReport

__all__ = [
    "HistoryProgress",
    "HistoryReport",
    "StageReport",
    "executions_alone",
    "play_history",
    "sessions_alone",
]
