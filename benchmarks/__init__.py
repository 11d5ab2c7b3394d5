"""Speed, scale and accuracy, measured on this machine and written down in README.md."""
