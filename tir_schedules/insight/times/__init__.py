"""Predicted times of kernels: of rungs and twins, and of anybody's files, shown with what limits them."""
