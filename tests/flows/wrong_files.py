"""Files that are no flows: each with the line and column of its first fault, words of it and a suggestion."""

from typing import NamedTuple


class WrongFile(NamedTuple):
    """A text, where it is wrong, what is said about it, and the name that is suggested."""

    text: str
    line: int
    column: int
    says: str
    suggestion: str | None = None


HEAD = "flow: contracts\nversion: 3\nsteps:\n"


def _steps(*lines: str) -> str:
    return HEAD + "".join(f"  {line}\n" for line in lines)


GIST = '- enrich: {name: gist, prompt: "Say it."}'
WRONG = {
    "empty": WrongFile("", 1, 1, "empty"),
    "a list": WrongFile("- parse: {}\n", 1, 1, "mapping of flow"),
    "no version": WrongFile("flow: a\nsteps: [{parse: {}}]\n", 1, 1, "'version' is missing"),
    "misspelt head": WrongFile("flow: a\nversoin: 1\nsteps: [{parse: {}}]\n", 2, 1, "versoin", "version"),
    "name in capitals": WrongFile(
        "flow: My Flow\nversion: 1\nsteps: [{parse: {}}]\n", 1, 7, "small", "my-flow"
    ),
    "version in words": WrongFile("flow: a\nversion: three\nsteps: [{parse: {}}]\n", 2, 10, "whole number"),
    "version 0": WrongFile("flow: a\nversion: 0\nsteps: [{parse: {}}]\n", 2, 10, "whole number from 1"),
    "no steps": WrongFile("flow: a\nversion: 1\nsteps: []\n", 3, 8, "at least one step"),
    "steps as text": WrongFile("flow: a\nversion: 1\nsteps: parse\n", 3, 8, "must be a list"),
    "unknown step": WrongFile(
        _steps("- parse: {}", "- splitt: {size: 256}"), 5, 5, "no step 'splitt'", "split"
    ),
    "step as text": WrongFile(_steps("- pares"), 4, 5, "a step is a mapping", "parse"),
    "two steps in one": WrongFile(_steps("- parse: {}", "  split: {}"), 5, 5, "a step of its own"),
    "only a condition": WrongFile(_steps("- when: pages > 3"), 4, 5, "does nothing"),
    "misspelt when": WrongFile(_steps("- whem: pages > 3", "  clean: {drop: []}"), 4, 5, "'whem'", "when"),
    "unknown parameter": WrongFile(_steps("- split: {sise: 256}"), 4, 13, "split has no 'sise'", "size"),
    "size too small": WrongFile(_steps("- split: {size: 3}"), 4, 19, "from 16 to"),
    "overlap too large": WrongFile(_steps("- split: {size: 64, overlap: 33}"), 4, 32, "from 0 to 32"),
    "unknown drop": WrongFile(_steps("- clean: {drop: [page_number]}"), 4, 20, "page_number", "page_numbers"),
    "no drop": WrongFile(_steps("- clean: {}"), 4, 5, "clean needs 'drop'"),
    "ocr": WrongFile(_steps("- parse: {ocr: atuo}"), 4, 18, "one of: auto, on, off", "auto"),
    "a format": WrongFile(_steps("- parse: {parsers: {pfd: holdfast}}"), 4, 23, "'pfd'", "pdf"),
    "a condition of parse": WrongFile(
        _steps("- parse: {}", "  when: pages > 3"), 5, 5, "cannot have a condition"
    ),
    "no prompt": WrongFile(_steps("- enrich: {name: gist}"), 4, 5, "needs 'prompt'"),
    "no name": WrongFile(_steps('- enrich: {prompt: "Say."}'), 4, 5, "needs 'name'"),
    "a name taken": WrongFile(_steps(GIST, GIST), 5, 20, "a field 'gist' already"),
    "a built-in name": WrongFile(_steps('- enrich: {name: text, prompt: "Say."}'), 4, 20, "every chunk has"),
    "a name with a dash": WrongFile(
        _steps('- enrich: {name: my-gist, prompt: "Say."}'), 4, 20, "small letters", "my_gist"
    ),
    "per page": WrongFile(_steps('- enrich: {name: a, per: chnk, prompt: "x"}'), 4, 28, "one of", "chunk"),
    "on_error": WrongFile(_steps(GIST, "  on_error: skp"), 5, 15, "one of: fail, skip", "skip"),
    "on_error of split": WrongFile(_steps("- split: {}", "  on_error: skip"), 5, 5, "has no on_error"),
    "a field in a condition": WrongFile(
        _steps("- when: pagse > 3", f"  {GIST[2:]}"), 4, 11, "pagse", "pages"
    ),
    "one equals sign": WrongFile(_steps('- when: format = "pdf"', f"  {GIST[2:]}"), 4, 18, "'='", "=="),
    "a condition cut off": WrongFile(_steps("- when: pages >", f"  {GIST[2:]}"), 4, 18, "ends too early"),
    "a bracket": WrongFile(_steps("- when: (pages > 3", f"  {GIST[2:]}"), 4, 21, "closing bracket", ")"),
    "AND": WrongFile(
        _steps("- when: pages > 3 AND page < 9", f"  {GIST[2:]}"), 4, 21, "small letters", "and"
    ),
    "an early condition": WrongFile(_steps("- when: page > 3", "  split: {}"), 4, 11, "'page'", "pages"),
    "a schema file": WrongFile(
        _steps("- extract: {name: terms, schema: term.schema.json}"), 4, 36, "no file", "terms.schema.json"
    ),
    "a wrong schema": WrongFile(
        _steps("- extract: {name: terms, schema: {type: object, properties: {a: {typ: string}}}}"),
        4,
        36,
        "typ",
    ),
    "a call": WrongFile(
        _steps('- python: {name: pii, call: "acme.pii.mark", version: 1}'),
        4,
        31,
        "module:function",
        "acme.pii:mark",
    ),
    "reads a stranger": WrongFile(
        _steps('- python: {name: pii, call: "a:b", version: 1, reads: [texts]}'), 4, 58, "'texts'", "text"
    ),
    "a later field": WrongFile(
        _steps('- enrich: {name: a, prompt: x, input: "{gist}"}', GIST), 4, 43, "later step"
    ),
    "a chunk's field per document": WrongFile(
        _steps(GIST, '- enrich: {name: a, per: document, prompt: x, input: "{gist}"}'),
        5,
        58,
        "made per chunk",
    ),
    "embed a stranger": WrongFile(_steps(GIST, '- embed: {text: "{gits} {text}"}'), 5, 21, "'gits'", "gist"),
    "an open brace": WrongFile(_steps('- embed: {text: "{text"}'), 4, 20, "not closed", "}"),
    "embed nothing": WrongFile(_steps('- embed: {text: "always"}'), 4, 19, "names no field"),
    "publish a stranger": WrongFile(
        _steps(GIST, "- publish: {search: [text, jist]}"), 5, 30, "'jist'", "gist"
    ),
    "the wrong order": WrongFile(_steps("- split: {}", "- parse: {}"), 5, 5, "parse must stand before split"),
    "publish twice": WrongFile(_steps("- publish: {}", "- publish: {}"), 5, 5, "already, in line 4"),
    "split twice": WrongFile(_steps("- split: {}", "- split: {size: 99}"), 5, 5, "give that one a condition"),
    "a name twice": WrongFile(_steps("- split: {size: 64, size: 65}"), 4, 23, "stands twice"),
    "not YAML": WrongFile(_steps("- split: {size: 64"), 5, 1, "not YAML"),
    "a tab": WrongFile("flow: a\n\tversion: 1\n", 2, 1, "not YAML"),
    "an anchor": WrongFile(_steps("- split: &a {size: 64}"), 4, 12, "anchors are not allowed"),
    "an alias": WrongFile("flow: a\nversion: *b\n", 2, 10, "aliases are not allowed"),
    "a tag": WrongFile('flow: a\nversion: !!python/object:os.system "x"\n', 2, 10, "tags like"),
    "two documents": WrongFile("flow: a\n---\nflow: b\n", 2, 1, "a file has one flow"),
    "JSON": WrongFile(
        '{\n\t"flow": "a",\n\t"version": 1,\n\t"steps": [{"splt": {}}]\n}', 4, 13, "'splt'", "split"
    ),
}
