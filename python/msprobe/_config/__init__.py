"""What a training tells about its configuration while it runs: packages, data, weights, calls of random functions."""
