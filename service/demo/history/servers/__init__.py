"""The simulated servers: each module is one, with its tools, and how agents get them wrong."""
