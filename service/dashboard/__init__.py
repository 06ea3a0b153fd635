"""The dashboard at `/dashboard`: pages over the services, for people who look before they read.

`mount` and what it imports know nothing of NiceGUI, which is imported when somebody first asks for
a page; everything else here may.
"""
