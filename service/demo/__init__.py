"""The demo: scripted agents call real tools with the mistakes that agents make."""
