"""What each component of a run can be told: keys, types, defaults and bounds, declared once, without torch."""
