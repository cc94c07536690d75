"""What is to be run, as the configuration says; nothing here imports torch."""
