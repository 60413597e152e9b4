"""The training monitor, as far as it knows no framework: configuration, series, files, liveness."""
