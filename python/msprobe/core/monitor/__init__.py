"""Anomalies of monitored trainings, under the module names of mindstudio-probe."""
