"""One adapter per system that we did not write."""
