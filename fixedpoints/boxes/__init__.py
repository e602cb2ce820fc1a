"""Zeros in a box: proven bounds for what expressions do there, and the search that stands on them."""
