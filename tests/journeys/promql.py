"""Reads every expression of the alerts and of the dashboard with a parser of PromQL, and fails at the first bad one."""

import json
from pathlib import Path

import promql_parser
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"

groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
alerts = [rule["expr"] for group in groups for rule in group["rules"]]
queries = [target["expr"].replace("$__rate_interval", "5m") for panel in panels for target in panel["targets"]]
assert alerts and queries
for expression in alerts + queries:
    promql_parser.parse(expression)
