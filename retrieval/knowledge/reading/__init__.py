"""Reading an error: its category, its signature and what is wrong with which parameter."""
