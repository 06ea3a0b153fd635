"""What `make generate` writes from the asynchronous modules. Not to be edited."""
