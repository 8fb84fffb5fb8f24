# SPDX-License-Identifier: Apache-2.0
"""scripts/measure-house must find what is planted here, and nothing in what stands beside it."""
import contextlib
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import world


@contextlib.contextmanager
def empty_house():
    """The script as a module, over a house of its own."""
    loader = importlib.machinery.SourceFileLoader("measure_house", str(world.REPOSITORY / "scripts/measure-house"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure_house", loader))
    sys.modules["measure_house"] = module  # dataclasses look there
    loader.exec_module(module)
    with tempfile.TemporaryDirectory() as folder:
        module.__dict__["REPOSITORY"] = pathlib.Path(folder)
        subprocess.run(["git", "init", "-q", folder], check=True)
        yield module


def put(house, name, text):
    path = house.REPOSITORY / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def class_of(name, functions):
    """A class that also has what is no function: how it is made and copied, and a field that a lock guards."""
    body = "".join(f"  int Duty{number}(int a) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);\n" for number in range(functions))
    return (f"namespace hvd::rt {{\nclass {name} {{\n public:\n  {name}();\n  ~{name}();\n  {name}& operator=(const {name}&) = delete;\n"
            f"{body} private:\n  Mutex mutex_;\n  int field_ ABSL_GUARDED_BY(mutex_) = 0;\n}};\n}}\n")


def tags(house):
    return list(house.tags(house.sources(*house.ROOMS)))


def test_a_class_is_as_big_as_its_duties():
    with empty_house() as house:
        put(house, "runtime/fits.h", class_of("Fits", 25))
        put(house, "runtime/many.h", class_of("Many", 26))
        put(house, "runtime/most.h", class_of("Most", 30))
        put(house, "runtime/big.h", class_of("Big", 31))
        too_big, many = house.class_figures(tags(house))
        assert too_big.counted == ["runtime/big.h: hvd::rt::Big has 31"]
        assert {line.split()[1] for line in many.counted} == {"hvd::rt::Many", "hvd::rt::Most", "hvd::rt::Big"}


def test_a_class_of_one_source_is_counted_once():
    with empty_house() as house:
        outside = "".join(f"int Local::Duty{number}(int a) {{ return a; }}\n" for number in range(31))
        put(house, "runtime/local.cc", class_of("Local", 31) + "namespace hvd::rt {\n" + outside + "}\n")
        assert house.class_figures(tags(house))[0].counted == ["runtime/local.cc: hvd::rt::Local has 31"]


def test_two_types_of_one_name_are_found():
    with empty_house() as house:
        put(house, "cli/frame.h", "namespace hvd::cli { struct Frame { int a; }; }\n")
        put(house, "runtime/frame.h", "namespace hvd::rt { struct Frame { int b; }; struct Other; }\n")
        put(house, "runtime/a.cc", "namespace hvd::rt { namespace { struct Own { int a; }; } }\n")
        put(house, "runtime/b.cc", "namespace hvd::rt { namespace { struct Own { int b; }; } }\n")
        assert house.twice(tags(house)).counted == []
        put(house, "runtime/other.h", "namespace hvd::rt { struct Frame { int c; }; }\n")
        assert house.twice(tags(house)).counted == ["hvd::rt::Frame: runtime/frame.h, runtime/other.h"]


LINES = [
    ("  if (options.elastic) return;", True),
    ("  const bool told = !known || job.elastic();", True),
    ("  slots_ = prepare.elastic() ? 128 : 4;", True),
    ("  if (free && elastic_) Take();", True),
    ("  // if (elastic) nothing", False),
    ("  if (elastic_.min_np > 2) return;", False),
    ("  bool elastic() const { return elastic_; }", False),
    ("  policy.elastic = true;", False),
]


def test_a_condition_that_asks_is_told_from_a_word():
    for line, asks in LINES:
        with empty_house() as house:
            put(house, "daemon/job.cc", line + "\n")
            assert (house.elastic().value == 1) == asks, line


def test_shapes_of_an_end_are_those_with_a_code_or_a_signal():
    with empty_house() as house:
        put(house, "daemon/end.h", "struct End {\n  int wait_status = 0;  // waitpid's\n  int signal = 0;\n};\nstruct Place {\n  int slot = 0;\n};\n")
        put(house, "proto/v1/a.proto", "message Died {\n  int32 exit_code = 1;\n}\n")
        put(house, "cli/reach/start.h", "struct StartEnd {\n  int wait_status = 0;\n};\n")
        assert house.deaths().counted == ["daemon/end.h: End", "proto/v1/a.proto: Died"]
