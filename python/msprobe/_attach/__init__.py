"""Capture without a line in the training script: what `msprobe run`, `estimate` and `certify` start in its processes.

site/sitecustomize.py waits for PyTorch; session.py reads what is asked for; step_detector.py finds the model and where steps
begin and end; capture.py, prices.py and digests.py do something at these moments.
"""
