"""Passive laws of a training step of PyTorch; the book of them is in msprobe._monitor.laws."""
