"""What is to be run, read from the configuration; nothing here imports torch."""
