"""The training monitor for MindSpore."""
