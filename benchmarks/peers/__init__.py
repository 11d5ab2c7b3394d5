"""Scripts that grow the same forest in different systems, each run as a command of its own by benchmarks/speed.py."""
