"""A first site.yaml with comments, from a few answers. Secrets are never in it, only the names of their variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spinney.configuration.site import SiteSettings, read_site
from spinney.connectors.sources import as_yaml
from spinney.errors import SourceFailed
from spinney.plugins import SOURCES

HEAD = """\
# Where this site's data are, and what its codes and units mean. Paths are relative to this file.
# Secrets are not written here: a setting that ends in _env names the environment variable that holds one.
# Try it with: spinney site check STUDY --site {file}
name: {name}

# Folder for the vault (cohorts, key) and the Data Docs. It should be readable by nobody else.
home: {home}

# Of times that are written without a zone.
timezone: {timezone}

# If the source's dates are shifted (de-identified data): what counts as now there, a day or an instant.
# as_of: 2131-05-01

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
# Your groups of patients in the study's words (docs/populations.md), for instance:
# group_names:
#   "4711": "https://registry.example.org/groups|heart-failure"
# Patients who object (docs/privacy.md): a file of identifiers, a query or Consent resources, for instance:
# opt_out:
#   - kind: file
#     path: opt-out.txt
# What this site has nothing of, once somebody has looked why; anything else that is empty keeps it out of rounds:
# accepted:
#   refused: [Condition]   # resource types of which nothing can be used
#   empty: [troponin]      # features that nobody has here; lab_* means all that begin with lab_
#   constant: [ward]       # features with one value in all rows
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


def site_text(file: str, answers: Mapping[str, str]) -> str:
    """The file's text. Answers: name, home, timezone, kind, and what the kind needs."""
    words = {key: as_yaml(value) for key, value in answers.items()}
    source: str = SOURCES[answers["kind"]].starter(answers)
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
