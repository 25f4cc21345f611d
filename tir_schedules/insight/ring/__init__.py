"""Who waits for whom over the slots of a ring in shared memory: copies, products, the mbarriers between."""
