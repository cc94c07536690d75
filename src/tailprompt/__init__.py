"""tailprompt: prompts for pretrained models when data are scarce or long-tailed."""

__version__ = "0.1.0"
