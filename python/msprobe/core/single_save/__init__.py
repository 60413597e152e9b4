"""The import paths of the earlier tool for SingleSave and SingleComparator."""
