"""The service's own spans (extra `otel`); nothing of OpenTelemetry is imported unless they are set.

`opening` makes what sends them, `request_spans` a span of each request, `stage_spans` one of each
stage that the rooms below name (`aftercall.stages`).
"""
