"""What the components of a run can be told: keys, types, defaults and bounds, without torch."""
