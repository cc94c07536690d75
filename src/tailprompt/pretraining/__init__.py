"""Pre-training of backbones."""
