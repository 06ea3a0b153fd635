"""Actions other than changing parameters, and honest words where no action helps."""
