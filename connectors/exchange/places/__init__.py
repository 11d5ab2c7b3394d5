"""Places that can be an exchange, one file each."""
