"""The import paths of mindstudio-probe for compare and compare_distributed."""
