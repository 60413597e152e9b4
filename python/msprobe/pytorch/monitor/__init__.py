"""The training monitor of PyTorch: TrainerMon, under the module names of mindstudio-probe."""
