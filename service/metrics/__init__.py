"""The page of `/metrics`: what is counted, what is asked at the scrape, and how it is written."""
