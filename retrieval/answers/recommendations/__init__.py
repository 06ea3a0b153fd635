"""What the evidence suggests to tool builders, as a queue; nothing here changes anything."""
