"""The dashboard at `/dashboard`: a file a page, for people who look before they read.

A page is a function from a `Look` to its content, which a template draws. It reads the service's
own answers, keeps nothing, and is requested again every second while a reader has it open;
`service.dashboard.routes` answers the requests, `static/dashboard.js` puts in what has changed.
"""
