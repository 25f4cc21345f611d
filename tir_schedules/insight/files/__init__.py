"""Anybody's kernels, from a file: what `inspect`, `layout` and `profile` show of them, and the page of
`check`."""
