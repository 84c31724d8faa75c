"""Reads the manifests of a folder, checks each against Kubernetes' schemas of every version named, and prints them as JSON.

    kubernetes.py FOLDER VERSION...

The files are those that the folder's kustomization.yaml names; what it generates and replaces is checked by its caller.
Prints {"kustomization": ..., "objects": [...], "settings": {file: what its TOML says}}, or fails with every problem found,
each with the file that it stands in.
"""

import json
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import yaml

folder, versions = Path(sys.argv[1]), sys.argv[2:]
kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
objects, problems = [], []
for name in kustomization["resources"]:
    for document in yaml.safe_load_all((folder / name).read_text()):
        objects.append(document)
        for version in versions:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                problems.append(f"{name}: {document.get('kind')}: {'.'.join(map(str, error.path))}: {error.message} (Kubernetes {version})")
if problems:
    raise SystemExit("\n".join(problems))
generated = [file for made in kustomization["configMapGenerator"] for file in made["files"]]
settings = {file: tomllib.loads((folder / file).read_text()) for file in generated}
json.dump({"kustomization": kustomization, "objects": objects, "settings": settings}, sys.stdout)
