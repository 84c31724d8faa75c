"""What cargo says of the test programs that it has built."""

import tomllib
from pathlib import Path


def test_program(message):
    """The test program of one of cargo's messages, or None: its package, its name (`lib` for the unit tests of a
    library), its source, the program, and the directory in which it is to run."""
    if message.get("reason") != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
        return None
    manifest, target = Path(message["manifest_path"]), message["target"]
    return {
        "package": tomllib.loads(manifest.read_text())["package"]["name"],
        "name": target["name"] if "test" in target["kind"] else "lib" if "lib" in target["kind"] else None,
        "source": str(Path(target["src_path"]).relative_to(manifest.parent)),
        "program": message["executable"],
        "directory": str(manifest.parent),
    }
