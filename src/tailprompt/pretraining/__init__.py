"""What makes a backbone."""
