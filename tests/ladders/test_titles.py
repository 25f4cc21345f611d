"""What names an article by its number names its title as well."""

import re
from pathlib import Path

import pytest

import cuda_reference
from tir_schedules.ladders import articles
from tir_schedules.ladders.articles import ARTICLES

LADDERS, TWINS = Path(articles.__file__).parent, Path(cuda_reference.__path__[0])
FILES = sorted([*LADDERS.glob("*/*.py"), *TWINS.glob("*/*.cu*"), LADDERS / "README.md"])


def untitled(text):
    """Numbers of the articles that a text names without a title."""
    text = re.sub(r"\s+", " ", re.sub(r"\n//", "\n", text))
    return {
        number
        for number in re.findall(r"\barticle (\d{3})\b", text, re.I)
        if f'"{ARTICLES[number].title}"' not in text
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_an_article_is_named_by_its_title(file):
    assert untitled(file.read_text()) == set()


def test_a_missing_title_is_found():
    assert untitled("// as in article\n// 002, section 2") == {"002"}
    assert untitled('// (article 000, "Warp\n// Tiling"); article 003') == {"003"}
