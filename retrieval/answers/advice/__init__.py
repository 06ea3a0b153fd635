"""Actions other than changing parameters, and honest words where there is none."""
