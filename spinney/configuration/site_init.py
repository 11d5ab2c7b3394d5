"""A first site.yaml with comments, from a few answers. Secrets are never in it, only the names of their variables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from spinney.configuration.site import SiteSettings, read_site
from spinney.errors import SourceFailed

HEAD = """\
# Where this site's data are, and what its codes and units mean. Paths are relative to this file.
# Secrets are not written here: a setting that ends in _env names the environment variable that holds one.
# Try it with: spinney site check STUDY --site {file}
name: {name}

# Folder for the vault (cohorts, key) and the Data Docs. It should be readable by nobody else.
home: {home}

# Of times that are written without a zone.
timezone: {timezone}

"""
TAIL = """
# Your codes in the study's words, for instance:
# codes:
#   "urn:our-lab|GLUC": "http://loinc.org|2339-0"
# Your units in UCUM, and units for codes whose values come without one, for instance:
# units:
#   mmHg: "mm[Hg]"
# assumed_units:
#   "http://loinc.org|2339-0": mg/dL
# Where nightly scores of patients go (docs/scores.md), for instance:
# scores:
#   table:
#     url: postgresql+psycopg://spinney@db/his
#     password_env: SCORES_PASSWORD
"""
EXCHANGE = """\
# The mailbox between the houses, for rounds: a folder, s3://bucket/prefix or sftp://user@host:port/path.
exchange:
  url: {url}
  # secrets:
  #   secret: EXCHANGE_SECRET

"""
NO_EXCHANGE = """\
# The mailbox between the houses, for rounds: a folder, s3://bucket/prefix or sftp://user@host:port/path.
# exchange:
#   url: s3://bucket/prefix
#   secrets:
#     secret: EXCHANGE_SECRET

"""
FILES = """\
# FHIR resources in a folder: NDJSON (also .gz) named after their type, or bundles. For a finished table write
# `table: cohort.csv` (or .parquet) instead of `path`.
source:
  kind: files
  path: {path}
"""
SQL = """\
# A database that SQLAlchemy reaches. It is only read, in one transaction. :since and :until bound the time.
source:
  kind: sql
  url: {url}
{secret}
  # Columns: patient, birth, sex, died.
  patients: |
    SELECT patient, birth, sex, died FROM patients
  # A query for each resource type that the study names. Columns: patient, code (as system|code), time, and where you
  # have them until, recorded, value, text, unit, status, class.
  events:
    Encounter: |
      SELECT patient, code, time, until, status, class FROM encounters WHERE time BETWEEN :since AND :until
    Observation: |
      SELECT patient, code, time, recorded, value, unit FROM observations WHERE time BETWEEN :since AND :until
"""
VARIABLE_HINT = "  # password_env: HIS_PASSWORD"
FHIR = """\
# A FHIR R4 server{how}.
source:
  kind: {kind}
  base_url: {base_url}
{auth}
  # If its certificate is signed by an authority of your own:
  # ca_file: hospital-ca.pem
"""
HOW = {"fhir-rest": " that is searched page by page", "fhir-bulk": " that exports in bulk ($export)"}
AUTH = {
    "none": "  auth: {{kind: none}}",
    "basic": "  auth:\n    kind: basic\n    user: {user}\n    password_env: {secret_env}",
    "bearer": "  auth:\n    kind: bearer\n    token_env: {secret_env}",
    "smart-backend": "  auth:\n    kind: smart-backend\n    client_id: {user}\n    key_env: {secret_env}",
}


def site_text(file: str, answers: Mapping[str, str]) -> str:
    """The file's text. Answers: name, home, timezone, kind, and what the kind needs."""
    words = {key: json.dumps(value, ensure_ascii=False) for key, value in answers.items()}  # quoted as YAML reads it
    kind = answers["kind"]
    if kind == "files":
        source = FILES.format(**words)
    elif kind == "sql":
        variable = (
            f"  password_env: {words['secret_env']}" if answers.get("secret_env") else "  # password_env: HIS_PASSWORD"
        )
        source = SQL.format(url=words["url"], secret=variable)
    else:
        auth = AUTH[answers["auth"]].format(**words)
        source = FHIR.format(how=HOW[kind], kind=kind, base_url=words["base_url"], auth=auth)
    exchange = EXCHANGE.format(url=words["exchange"]) if answers.get("exchange") else NO_EXCHANGE
    return HEAD.format(file=file, **words) + exchange + source + TAIL


def write_site(path: Path, answers: Mapping[str, str]) -> SiteSettings:
    """Write site.yaml where there is none yet, and read it back; a mistake in an answer leaves no file behind."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(site_text(path.name, answers))
    except FileExistsError:
        raise SourceFailed(f"{path} is there already; edit it, or give another name with --output") from None
    except OSError as error:
        raise SourceFailed(f"{path} cannot be written ({error.strerror}); give another name with --output") from None
    try:
        return read_site(path)
    except BaseException:
        path.unlink()
        raise
