"""OTLP traces read into executions: every span that is a call of a tool, in three conventions."""
