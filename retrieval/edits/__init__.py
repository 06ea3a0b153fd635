"""Edits: the general form of what a repair did, so that it can be done to another call.

`rename tz -> timezone` is general, and so is `take the value that the error states`; `set timezone
to "Europe/Berlin"` is only right for a call that said what the mended one said, so a `replace`
carries the value it stood for.
"""
