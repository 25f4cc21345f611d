"""What bounds the accuracy of fp16x3: the tables, and what they say."""

import fp16_parts
import pytest


def test_the_tables_are_those_of_the_script(tmp_path):
    assert fp16_parts.main(["--check"]) == 0
    changed = tmp_path / "README.md"
    changed.write_text("<!-- fp16 parts: 64 -->\n| three products |\n\n<!-- end -->", "utf-8")
    assert fp16_parts.main(["--check", "--readme", str(changed)]) == 1


@pytest.mark.parametrize("k", fp16_parts.LENGTHS)
def test_only_all_products_are_nearer_than_fma_where_terms_cancel(k):
    found = fp16_parts.ratios(k)
    names = ("three products", "and that of second parts", "and those of third parts")
    assert all(min(found[name]["cancelling"]) > 2 for name in names)
    for name in ("all six", "three, the others in e4m3"):
        assert max(max(pair) for pair in found[name].values()) < 1


def test_three_parts_hold_every_bit_and_two_all_but_every_fourth():
    values = fp16_parts.np.random.default_rng(1).uniform(2**14, 2**15, 10000).astype("float32")
    first, second, third = fp16_parts.parts_of(values.astype("float64"))
    assert (first + second + third == values).all()
    assert 0.24 < (third != 0).mean() < 0.26
