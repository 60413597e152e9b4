"""Names of mindstudio-probe for what compares gradients: `msprobe.core.grad_probe.grad_compare`."""
