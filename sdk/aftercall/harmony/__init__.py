"""Harmony: the text format of gpt-oss, parsed as it streams, its tool calls run and shown."""

from aftercall._generated.harmony_tool_calls import HarmonyToolCalls
from aftercall.harmony.async_tool_calls import AsyncHarmonyToolCalls
from aftercall.harmony.calls import (
    CallExecutor,
    Dispatcher,
    HarmonyCall,
    HarmonyItem,
    HarmonyResult,
    HarmonyText,
    NoOpExecutor,
    Ran,
)
from aftercall.harmony.parser import MAX_PAYLOAD_BYTES, TEXT_TOOLS, HarmonyParser

__all__ = [
    "MAX_PAYLOAD_BYTES", "TEXT_TOOLS", "AsyncHarmonyToolCalls", "CallExecutor",
    "Dispatcher", "HarmonyCall", "HarmonyItem", "HarmonyParser", "HarmonyResult", "HarmonyText",
    "HarmonyToolCalls", "NoOpExecutor", "Ran",
]  # fmt: skip
