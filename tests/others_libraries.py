"""Gives the build of a copy of the tree the libraries of other people that this tree's build has made.

    python3 tests/others_libraries.py FROM TO       both are target directories

A build of a copy needs a target directory of its own. In this tree's, cargo takes a crate of the copy and the crate of
the same name here for one and the same: it knows both by their place in the workspace, and compares times. So it may
give the copy what was built from this tree.
"""

import os
import shutil
import sys
from pathlib import Path

LIBRARIES = (".rlib", ".rmeta", ".so")


def give_others_libraries(source, there):
    """A library is linked, because no build writes into it: it is replaced. What a build writes into is copied. What is
    there already stays."""
    for part in ("deps", "build", ".fingerprint"):
        old, new = source / "debug" / part, there / "debug" / part
        if old.is_dir() and not new.exists():
            shutil.copytree(old, new, ignore=_ours, copy_function=_link_library, symlinks=True)


def _ours(directory, names):
    """Which of these files and folders a build of the copy has no use for: what is made of our packages, and programs."""
    deps = Path(directory).name == "deps"
    return [name for name in names if "feedgate" in name or (deps and Path(name).suffix not in (".d", *LIBRARIES))]


def _link_library(source, there):
    if Path(source).suffix in LIBRARIES:
        try:
            return os.link(source, there)
        except OSError:  # for example another file system
            pass
    shutil.copy2(source, there)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    give_others_libraries(Path(sys.argv[1]), Path(sys.argv[2]))
