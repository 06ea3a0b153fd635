"""The HTTP service: app, routes, errors, settings and command line."""
