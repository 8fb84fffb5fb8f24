# SPDX-License-Identifier: Apache-2.0
"""Documents that must say what the sources say, and the check of all documents, which must find what is planted here."""
import importlib.machinery
import importlib.util
import re

import world

ROW = re.compile(r'Setting\{Id::\w+,\s*"(HVD_\w+)",\s*(?:"(HOROVOD_\w+)"|nullptr),\s*Kind::\w+,\s*(?:"([^"]*)"|nullptr)')


def settings_of_the_table():
    """Name → Horovod's name and the default, as the page writes them."""
    text = (world.REPOSITORY / "proto/settings/settings.cc").read_text()
    found = {name: (horovod, "measured" if default is None else default)
             for name, horovod, default in (match.groups() for match in ROW.finditer(text))}
    assert len(found) == text.count("    Setting{Id::"), "a row that this test cannot read"
    return {name: (horovod or "", default) for name, (horovod, default) in found.items()}


def settings_of_the_page():
    """The same of docs/settings.md: the rows of tables that have Horovod's names."""
    found = {}
    for line in (world.REPOSITORY / "docs/settings.md").read_text().split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| `HVD_") else []
        if len(cells) == 4:
            names = ["".join(re.findall(r"^`(\w+)`", cell)) for cell in cells[:2]]
            found[names[0]] = (names[1], cells[2])
    return found


def test_the_page_of_settings_has_each_with_its_default():
    assert settings_of_the_page() == settings_of_the_table()


def check_prose():
    """The script as a module: its functions are pure."""
    loader = importlib.machinery.SourceFileLoader("check_prose", str(world.REPOSITORY / "scripts/check-prose"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_prose", loader))
    loader.exec_module(module)
    return module


FILES = ["README.md", "room/README.md", "room/engine.cc", "room/engine.h", "room/deep/part.cc", "scripts/build"]


def faults(text, name="room/README.md"):
    check = check_prose()
    return [fault.removeprefix(name) for fault in check.faults_of(name, text, check.Tree(FILES))]


def test_a_document_that_is_true_and_short_has_no_fault():
    assert not faults("# room\n`engine.h`, `deep/`, `room/deep/part`, [up](../README.md)\n| file | is |\n|---|---|\n| `engine` | all |\n"
                      "```\nscripts/build -- hvdrun\n```\n`build/bin/hvdrun` and `host1:4` are no files of ours.\n")


def test_names_of_files_that_are_not_there_are_found():
    assert faults("`gone.h`\n") == [":1: there is no gone.h"]
    assert faults("`deep/gone` and `elsewhere/engine`\n") == [":1: there is no deep/gone", ":1: there is no elsewhere/engine"]
    assert faults("| file | is |\n|---|---|\n| `gone` | all |\n\n| word | is |\n|---|---|\n| `word` | no file |\n") == [":3: there is no gone"]
    assert faults("```\nscripts/gone 2\n```\n") == [":2: there is no scripts/gone"]
    assert faults("[up](README.md/..), [there](deep/README.md)\n") == [":1: the link to deep/README.md leads nowhere"]


def test_a_document_has_a_bound_in_words_and_columns():
    assert faults("word\n" * 801) == [": 801 words; at most 800 may be"]
    assert not faults("word\n" * 900, "README.md")
    assert faults("x" * 121 + "\n") == [":1: 121 columns; at most 120 may be"]
    assert not faults("wört " * 24 + "\n")


def test_openers_are_found_in_prose_and_not_in_code():
    check = check_prose()
    text = "# Who\nWhat is it?\n- **Of all** these.\n\n```\nSo what\n```\n| Else | |\n|---|---|\n| Those here | Sofas |\n"
    said = [sentence for block in check.document_blocks(text) for _, sentence in check.sentences(block)]
    assert [sentence for sentence in said if check.OPENERS.match(sentence)] == ["What is it?", "Of all these.", "Else", "Those here"]
