"""Speed of training, ours beside others: `python -m benchmarks` is the one command."""
