"""Moving everything from one store to another by way of an archive file."""
