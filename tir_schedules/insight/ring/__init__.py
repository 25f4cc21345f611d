"""Who waits for whom over the slots of a ring in shared memory: copies, products and the mbarriers between."""
