"""The import paths of mindstudio-probe for SingleSave and SingleComparator."""
