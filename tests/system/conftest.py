# SPDX-License-Identifier: Apache-2.0
"""How pytest runs the whole-program tests: each in a process of its own, for as long as its bound allows (apart, world.bound)."""
import apart
import pytest
import world


def pytest_addoption(parser):
    parser.addoption("--named", metavar="PATTERN", help="only the tests of whose names (file.test) this regular expression matches a part")


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: counts cores or times, so no other test runs beside it (world.alone)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    named = config.getoption("named")
    chosen = [item for item in items if not named or world.is_named(item.module.__name__, item.name, named)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    for item in chosen:
        if getattr(item.function, "alone", False):
            item.add_marker("alone")
    # The longest first, so that at the end no worker is left with a long one while the others have nothing.
    items[:] = sorted(chosen, key=lambda item: -world.bound_of(item.function))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    bound = world.bound_of(pyfuncitem.function)
    code, output = apart.run(pyfuncitem.module.__name__, pyfuncitem.name, bound)
    if code == apart.SKIPPED:
        pytest.skip(output.strip())
    if code != 0:
        why = f"took longer than {bound} s" if code is None else f"exit code {code}"
        pytest.fail(f"{why}\n" + "\n".join(output.rstrip().splitlines()[-60:]), pytrace=False)
    return True
