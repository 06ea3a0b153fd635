"""The commands that the service adds to `aftercall`; heavy imports wait until one is run."""
