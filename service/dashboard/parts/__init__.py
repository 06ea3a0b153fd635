"""Parts of single pages that are too large to stand in them."""
