"""The cache as its tests ask for entries."""


def entry(cache, kind, key, build):
    """The folder of an entry, which `build` fills where there is none."""
    cache.load(kind, key, build, lambda folder: None)
    return cache.place(kind, key)
