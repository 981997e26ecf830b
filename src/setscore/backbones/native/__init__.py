"""One transformer of our own for every masked-diffusion family; it needs the extra `torch`."""
