"""What pages show, made from what the services answer. Pure: no NiceGUI, no I/O."""
