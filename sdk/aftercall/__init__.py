"""SDK of Aftercall."""
