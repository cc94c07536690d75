"""The machine that a job runs on: CPUs, GPUs, a process that has imported everything, lines on progress."""
