"""What labels are, and how predictions are scored."""
