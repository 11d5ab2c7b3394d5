"""Prefect tasks: a name, retries, cache and persistence around one call each."""
