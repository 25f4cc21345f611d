"""Code on pages: tokens have classes, text stays as it is, and the colours can be read."""

import html
import re

import pytest

from tir_schedules.pages.code import HighlightedSource, highlighted, highlighted_line, highlighted_lines

CUDA = "/* one\n   two <b> */\n__global__ void k(float *x) {\n  x[0] = 1.5f; // & that\n}\n"


def bare(markup):
    return html.unescape(re.sub(r"</?span[^>]*>", "", markup))


TEXTS = [
    (CUDA, "cu"),
    ("@f\ndef g(x):\n\n    return 'a' + \"b\"", "python"),
    (".reg .b32 %r<4>;", ""),
    ("", "cu"),
    ("\n\n", "cu"),
]


@pytest.mark.parametrize("code, language", TEXTS)
def test_the_text_stays_as_it_is(code, language):
    assert bare(highlighted(code, language)) == code
    assert [bare(line) for line in highlighted_lines(code, language)] == code.split("\n")
    assert "\n" not in highlighted_line("x = 1", "python")


def test_a_comment_of_several_lines_is_one_and_lines_of_headers_stand_alone():
    source = HighlightedSource(CUDA, "cu")
    assert "t-c" in source.line(2, "") and "&lt;b&gt;" in source.line(2, "")
    assert bare(source.line(0, "int y;")) == "int y;" == bare(source.line(99, "int y;"))


def test_every_token_can_be_read(check_page):
    """On the panel, and in an unchanged line of a difference."""
    from test_pages import page_of

    code = highlighted(CUDA + "#include <x.h>\nint f() { return threadIdx.x; }\n", "cu")
    code += highlighted("@d\ndef f():\n    return 'a', 1 is None\n", "python")
    same = "".join(f"<span class='same'>{line}</span>" for line in highlighted_lines(CUDA, "cu"))
    check_page(page_of(f"<h2 id='one'>One</h2><pre>{code}</pre><pre class='diff'>{same}</pre>"))
