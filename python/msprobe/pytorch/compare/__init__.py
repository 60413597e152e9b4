"""The import paths of the earlier tool for compare and compare_distributed."""
