"""The operations of the service, a file a domain; each route is the operation itself.

An operation is a function that takes the caller's space first and typed models after it. HTTP calls
it as a route; dashboard, alerts and command line call it as a function: `await put_tool(space,
"web.search", spec)`. Its docstring up to "Raises:" is its description in the OpenAPI document.
"""
