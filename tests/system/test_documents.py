# SPDX-License-Identifier: Apache-2.0
"""Documents that must say what the sources say."""
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
            names = [re.match(r"(?:`(\w+)`)?", cell)[1] or "" for cell in cells[:2]]
            found[names[0]] = (names[1], cells[2])
    return found


def test_the_page_of_settings_has_each_with_its_default():
    assert settings_of_the_page() == settings_of_the_table()
