"""How-to pages do what they say: their commands are run in order, as a reader would type them."""

import pytest

from tests.docs import howto

SECONDS = 300.0


@pytest.mark.slow
@pytest.mark.parametrize("page", howto.PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_in_order(page, tmp_path):
    """In an empty folder, with a fresh installation, no command of the page fails."""
    code, printed = howto.run(page.read_text(), tmp_path, {}, SECONDS)
    assert code == 0, f"{page.name} ended with {code}:\n{printed[-6000:]}"


@pytest.mark.parametrize("page", howto.PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page):
    """A block has a language, so that no command hides from the run; one that is not run says why."""
    blocks = howto.blocks(page.read_text())
    assert [block.text for block in blocks if not block.language] == []
    assert [block.text for block in blocks if block.word == "not run" and len(block.about) < 15] == []


def test_a_page_with_a_wrong_command_fails(tmp_path):
    """An unknown option, an unset variable and a refused request each end the run."""
    for wrong in ("holdfast search --nonsense x", 'echo "$NOT_SET"', "curl -s http://127.0.0.1:8642/healthz"):
        code, printed = howto.run(f"```sh\necho begun\n{wrong}\n```\n", tmp_path, {}, SECONDS)
        assert code != 0, wrong
        assert "begun" in printed


def test_files_and_premises_of_a_page_are_made(tmp_path):
    """What a page takes for granted and the files that it shows are there when its commands run."""
    page = (
        "<!-- given\necho one >given.txt\n-->\n\n<!-- file: a/b.txt -->\n\n```python\ntwo\n```\n\n"
        "<!-- not run: nobody has such a server -->\n\n```sh\nexit 1\n```\n\n"
        "1. x\n\n   ```sh\n   cat given.txt a/b.txt\n   ```\n"
    )
    code, printed = howto.run(page, tmp_path, {}, SECONDS)
    assert (code, [line for line in printed.splitlines() if not line.startswith("+")]) == (0, ["one", "two"])
