"""The dashboard at `/dashboard`: a file a page, for people who look before they read.

A page is a function from a `Look` to what is shown, which a template draws. It reads the service's
own answers, keeps nothing, and is asked for again every second while someone looks;
`service.dashboard.routes` answers the requests, `static/dashboard.js` puts in what has changed.
"""
