"""Validates rendered charts. Argument: a folder of YAML files. Prints `objects` by file and `problems` as JSON."""

import json
import sys
from pathlib import Path

import kubernetes_validate
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PrometheusRule, ServiceMonitor

# The oldest version that the chart accepts, and the newest.
VERSIONS = ["1.30", "1.37"]
CUSTOM = {model.__name__: model for model in (ScaledObject, ServiceMonitor, PrometheusRule)}

objects, problems = {}, []
for file in sorted(Path(sys.argv[1]).glob("*.yaml")):
    documents = yaml.load_all(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    objects[file.stem] = [document for document in documents if document]
    for document in objects[file.stem]:
        name = f"{file.stem}: {document['kind']} {document['metadata']['name']}"
        try:
            if document["kind"] in CUSTOM:
                CUSTOM[document["kind"]].model_validate(document, extra="forbid")
                continue
            for version in VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)
        except Exception as error:
            problems.append(f"{name}: {error}")
json.dump({"objects": objects, "problems": problems}, sys.stdout)
