"""Broken responses of a generation: rare characters, garbled text, repetition, NaN. The call and the labels of mindstudio-probe."""

from .detector import LABELS, Place, analyze_output_anomaly, find_anomalies

__all__ = ["LABELS", "Place", "analyze_output_anomaly", "find_anomalies"]
