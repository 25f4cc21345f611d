"""Search for the fastest configuration of a rung, on one shape and one GPU.

Each room imports only those before it: space (what can be chosen) < records (what was found) < building
(compile and verify a candidate) < cost (predict) < measure (time, or predict) < search (MetaSchedule).
"""
