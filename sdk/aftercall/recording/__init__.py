"""Recording: executions are handed over in microseconds and delivered in the background."""

from aftercall.recording.recorder import Recorder, RecorderStats

__all__ = ["Recorder", "RecorderStats"]
