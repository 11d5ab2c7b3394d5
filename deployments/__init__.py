"""How Spinney is run, as data."""
