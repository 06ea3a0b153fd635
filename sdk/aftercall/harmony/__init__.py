"""Harmony: the text format of gpt-oss, parsed as it streams, its tool calls run and told."""

from aftercall.harmony.dispatcher import Dispatcher
from aftercall.harmony.execution import CallExecutor, NoOpExecutor, Ran
from aftercall.harmony.items import (
    HarmonyCall,
    HarmonyItem,
    HarmonyResult,
    HarmonyText,
    outward,
)
from aftercall.harmony.parser import MAX_PAYLOAD_BYTES, TEXT_TOOLS, HarmonyParser
from aftercall.harmony.rendering import neutralised, render_tool_result
from aftercall.harmony.tool_calls import DOUBTFUL, AsyncHarmonyToolCalls, HarmonyToolCalls

__all__ = [
    "DOUBTFUL",
    "MAX_PAYLOAD_BYTES",
    "TEXT_TOOLS",
    "AsyncHarmonyToolCalls",
    "CallExecutor",
    "Dispatcher",
    "HarmonyCall",
    "HarmonyItem",
    "HarmonyParser",
    "HarmonyResult",
    "HarmonyText",
    "HarmonyToolCalls",
    "NoOpExecutor",
    "Ran",
    "neutralised",
    "outward",
    "render_tool_result",
]
