"""Prometheus metrics of tool calls (seed 001); they need the extra `metrics`.

`ToolCallMetrics` counts calls and their latencies under labels whose number is bounded. It is an
event sink, and a collector of a `prometheus_client` registry.
"""

from aftercall.errors import ConfigurationError
from aftercall.metrics.labels import OTHER, tool_label

try:
    from aftercall.metrics.tool_calls import ToolCallMetrics
except ModuleNotFoundError as error:
    raise ConfigurationError(
        f"metrics need {error.name}; install it with `pip install aftercall[metrics]`"
    ) from error

__all__ = ["OTHER", "ToolCallMetrics", "tool_label"]
