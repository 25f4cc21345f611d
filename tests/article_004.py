"""What article 004 says, for tests that hold tables against it."""

ARTICLE = """
0~3 0~3 0~3
4~7 20~23 20~23
8~11 40~43 8~11
12~15 60~63 28~31
16~19 80~83 16~19
20~23 100~103 4~7
24~27 120~123 24~27
28~31 140~143 12~15
"""
"""Article 004's table as printed: threads, total banks, inner banks; a row of 32 halves with 8 of padding."""
