"""The sample collection: papers of one harbour that are about the same people, ships and rules."""

from collections import Counter

import pytest

from scripts import sample_files

NAMES = (
    *("Ingrid Solberg", "Tomas Reyes", "Joan Okafor", "Piet van Dalen", "Henrik Aas"),
    *("Petrel", "Albatross", "Hask & Sons", "Baltic Mutual", "Northway Lines", "Port Wren"),
)


@pytest.fixture
def texts(read):
    """What is read of each file, by name."""
    return {
        path.name: "\n".join(
            block.text for page in read(path.read_bytes(), path.name)[1] for block in page.blocks
        )
        for path in sorted(sample_files.FOLDER.iterdir())
    }


def test_every_name_of_the_sample_is_in_several_documents(texts):
    """A dozen files in eight formats; a person, ship or company is met in at least three of them."""
    assert len(texts) == 12
    assert {name.rpartition(".")[2] for name in texts} >= {
        "csv",
        "docx",
        "eml",
        "html",
        "md",
        "pdf",
        "txt",
        "xlsx",
    }
    count = Counter(name for text in texts.values() for name in NAMES if name in text.replace("\n", " "))
    assert min(count[name] for name in NAMES) >= 3, count


def test_the_binary_files_of_the_sample_are_those_of_the_script():
    """`python -m scripts.sample_files` writes the same bytes, and the wheel stays small."""
    for name, content in sample_files.files().items():
        assert (sample_files.FOLDER / name).read_bytes() == content, name
    assert sum(path.stat().st_size for path in sample_files.FOLDER.iterdir()) < 40_000
