"""How long a kernel takes, without a GPU: what ptxas made of it, instruction by instruction, and what each
warp of a block executes of that, and an SM that is simulated with it."""
