"""What a hook of ours may raise by a fault, and must not let through to the training."""

OURS = (RuntimeError, ValueError, OSError, TypeError, AttributeError, KeyError, IndexError, MemoryError, ImportError)
