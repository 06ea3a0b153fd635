"""The HTTP side: app, routes, reading requests, errors in their one form, limits, OpenAPI."""
