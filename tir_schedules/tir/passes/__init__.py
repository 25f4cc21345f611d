"""Passes this project adds to TVM's lowering, for what schedule primitives and TVM's own passes do not
reach."""

UNROLL_STAGES = "tir_schedules.unroll_stages"
"""The annotation with which a schedule says how many stages of a pipelined loop are unrolled; see
unroll_stages.py."""

COPIES_FIRST = "tir_schedules.copies_first"
"""The annotation with which a schedule says that copies of later tiles stay in front of the work; see
copies_after_compute.py and late_waits.py."""

PARTIAL_GROUP = "tir_schedules.partial_group"
"""The annotation with which a schedule says how many columns of blocks a group of a threadblock swizzle has;
see partial_group.py."""

RING = "tir_schedules.ring"
"""The annotation with which a schedule says of a loop over slabs how many slots their ring has; see
ring_barriers.py."""

ROLES = "tir_schedules.roles"
"""The annotation with which a schedule says of a loop over slabs that warpgroups share the work by roles: how
many slots the ring has, and how many blocks a cluster; see warp_roles.py."""

PROGRAMS = "tir_schedules.programs"
"""The annotation with which a schedule says of the loop on blockIdx.y how many blocks compute all tiles, how
many rows of tiles a stripe has, and how many blocks a cluster; where tiles are shared slab by slab, how many
are, and how many slabs each has; see persistent_tiles.py and streamed_tiles.py."""

ADDED = "tir_schedules.added"
"""The annotation with which a schedule says of a loop over tiles of K that programs share it: how many turns
it has, how many tiles a slab has, and how many elements of A and of B lie between one slab and the next; see
added_tiles.py."""

EXTENTS = "tir_schedules.extents"
"""The attribute with which a function says how large its matrices are, where its buffers are as large as
whole tiles; see tensor_maps.py."""

PITCHES = "tir_schedules.pitches"
"""The attribute with which a function says how many bytes lie between rows of its matrices, where that is not
what the extents say; see tensor_maps.py."""

CLUSTER = "tir_schedules.cluster"
"""The attribute with which a function says how many blocks a cluster has, along x."""

GUARDS_OUTSIDE = "tir_schedules.guards_outside"
"""The annotation with which a schedule says of a loop that guards stand in front of it; see
guards_outside.py."""

TURNS = "tir_schedules.turns"
"""The annotation with which a schedule says that a loop turns round, and by the rounds of which loop around
it: 1 is the next, 2 the one around that; see turning_products.py."""

AHEAD = "tir_schedules.ahead"
"""The annotation with which a schedule says of a loop over slabs how many slots their ring has, where all
threads multiply and one has boxes copied ahead; see boxes_ahead.py."""
WRAPPED = "tir_schedules.wrapped"
"""The annotation with which a schedule says of a padded copy that it may read any row of the matrix in place
of one beyond the last: the dimension of the rows, and how many neighbours along it are copied at a time; see
wrapped_edges.py."""

SHIFTED = "tir_schedules.shifted"
"""The annotation with which a schedule says of a padded copy, or of a copy of the padded result, that its
last tile may start earlier: threes of an axis and the extents of a tile and of the matrix along it; see
shifted_edges.py."""

LAST_TURN = "tir_schedules.last_turn"
"""The annotation with which a schedule says of a loop over tiles that its last turn stands apart; see
last_turn.py."""

LAST_BLOCK = "tir_schedules.last_block"
"""The annotation with which a schedule says of a loop over blocks that the last block goes on with the next
loop nest: with 1 for fences, 0 for marks; see last_block.py."""
