"""What the host code of a CUDA file says of a launch. It is read, and never run."""
