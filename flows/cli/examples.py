"""An example for every command, shown below its help. A test parses each, so none can name an option that is gone."""

from __future__ import annotations

import click

EXAMPLES: dict[str, tuple[str, ...]] = {
    "admission decide": (
        "spinney admission decide readmission 12 --yes --steward 'head of cardiology' --steward-home steward",
    ),
    "admission list": ("spinney admission list", "spinney admission list --json"),
    "admission sign": ("spinney admission sign readmission 12 --no --steward-home steward",),
    "audit evidence": (
        "spinney audit evidence -o pack.zip",
        "spinney audit evidence --attacks attacks.json",
    ),
    "audit export": ("spinney audit export --home home -o audit.csv", "spinney audit export --home home --format json"),
    "audit open": ("spinney audit open 7", "spinney audit open 12 --home home --tree 3"),
    "audit show": ("spinney audit show --site site.yaml --last 50",),
    "audit verify": ("spinney audit verify --home home", "spinney audit verify --home home --against audit.csv"),
    "completion": ("spinney completion bash > ~/.local/share/bash-completion/completions/spinney",),
    "coordinator admit": ("spinney coordinator admit joining-ash.json",),
    "coordinator approve": ("spinney coordinator approve study.yaml --by chair",),
    "coordinator deploy": ("spinney coordinator deploy",),
    "coordinator dismiss": ("spinney coordinator dismiss beech --study readmission",),
    "coordinator init": ("spinney coordinator init --name oak --exchange s3://wood/mail --study study.yaml",),
    "coordinator invite": ("spinney coordinator invite ash -o invite-ash.json",),
    "coordinator roster": ("spinney coordinator roster", "spinney coordinator roster --json"),
    "coordinator rotate": ("spinney coordinator rotate rotation.json",),
    "coordinator schema": ("spinney coordinator schema > coordinator.schema.json",),
    "coordinator serve": ("spinney coordinator serve",),
    "demo data": ("spinney demo data --sites 20 --patients 5000 --out tables",),
    "demo night": ("spinney demo night", "spinney demo night --night 2 --json"),
    "down": ("spinney down",),
    "house verify": ("spinney house verify --site site.yaml", "spinney house verify --home home --json"),
    "keys new": ("spinney keys new --home home",),
    "keys rotate": ("spinney keys rotate --site site.yaml -o rotation.json",),
    "keys show": ("spinney keys show --home home", "spinney keys show --home home --json"),
    "model compare": ("spinney model compare champion candidate", "spinney model compare 7 12 --json"),
    "model export": ("spinney model export champion -o out", "spinney model export 12 --no-onnx --fair"),
    "model list": ("spinney model list", "spinney model list --study readmission --json"),
    "model promote": ("spinney model promote 12 --by steward",),
    "model rollback": ("spinney model rollback",),
    "model show": ("spinney model show candidate", "spinney model show 12 --json"),
    "model withdraw": ("spinney model withdraw beech",),
    "predict": ("spinney predict patients.csv --model readmission@champion -o scores.csv",),
    "site approve": ("spinney site approve readmission --by officer",),
    "site approve-roster": ("spinney site approve-roster", "spinney site approve-roster --study readmission"),
    "site attack": ("spinney site attack study.yaml", "spinney site attack study.yaml --seconds 600 --json"),
    "site catalogue": ("spinney site catalogue -o catalogue.jsonld",),
    "site check": ("spinney site check study.yaml", "spinney site check study.yaml --sample 90d --json"),
    "site deploy": ("spinney site deploy",),
    "site forget": ("spinney site forget --older-than 30d",),
    "site init": (
        "spinney site init --name ash --kind files --path fhir --exchange s3://wood/mail",
        "spinney site init --name ash --kind sql --url postgresql+psycopg://reader@db/his --secret-env HIS_PASSWORD",
    ),
    "site join": ("spinney site join invite-ash.json -o joining-ash.json",),
    "site schema": ("spinney site schema > site.schema.json",),
    "site serve": ("spinney site serve",),
    "site studies": ("spinney site studies", "spinney site studies --json"),
    "study check": ("spinney study check study.yaml", "spinney study check study.yaml --json"),
    "study codes": ("spinney study codes study.yaml", "spinney study codes study.yaml --site site.yaml --json"),
    "study import-fair4health": ("spinney study import-fair4health featureset.json -o study.yaml",),
    "study infer": (
        "spinney study infer tables --label readmitted -o study.yaml",
        "spinney study infer tables --label 'Readmitted?' --icd-chapters diag_1 --numbers ward_id -o study.yaml",
    ),
    "study pin": ("spinney study pin study.yaml",),
    "study schema": ("spinney study schema > study.schema.json",),
    "up": ("spinney up", "spinney up --out demo --json --yes"),
}


def with_examples(command: click.Command, path: str) -> click.Command:
    """The command, and those below it, with their examples, unless they bring their own."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            with_examples(below, f"{path} {name}")
    if command.epilog is None and path in EXAMPLES:
        title = "Example" if len(EXAMPLES[path]) == 1 else "Examples"
        command.epilog = "\n".join(["\b", f"{title}:", *(f"  {line}" for line in EXAMPLES[path])])
    return command
