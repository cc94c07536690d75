"""The command that writes the numbers of README and docs: `make results`."""
