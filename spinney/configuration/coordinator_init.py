"""A first coordinator.yaml with comments, from a few answers. Secrets are never in it, only their variables' names."""

from __future__ import annotations

import json
from pathlib import Path

from spinney.configuration.house import CoordinatorSettings, read_coordinator
from spinney.errors import SourceFailed

TEXT = """\
# Who opens the rounds, and where the houses exchange their messages. Paths are relative to this file.
name: {name}

# Folder for the key, the papers of the studies and the audit log. It should be readable by nobody else.
home: {home}

# The mailbox between the houses: a folder, s3://bucket/prefix or sftp://user@host:port/path. It has to be there.
exchange:
  url: {exchange}
  # Secrets are not written here. `secrets` names the environment variables that hold them, for instance for S3:
  # options:
  #   endpoint_url: https://s3.example.org
  # secrets:
  #   key: EXCHANGE_KEY
  #   secret: EXCHANGE_SECRET
  # and for SFTP:
  # options:
  #   known_hosts: known_hosts
  #   key_filename: exchange_key
"""


def write_coordinator(path: Path, name: str, home: str, exchange: str) -> CoordinatorSettings:
    """Write coordinator.yaml where there is none, and read it back; a mistake in an answer leaves no file behind."""
    words = {"name": name, "home": home, "exchange": exchange}
    text = TEXT.format(**{key: json.dumps(value, ensure_ascii=False) for key, value in words.items()})
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SourceFailed(f"{path} is there already; edit it, or give another name with --output") from None
    except OSError as error:
        raise SourceFailed(f"{path} cannot be written ({error.strerror}); give another name with --output") from None
    try:
        return read_coordinator(path)
    except BaseException:
        path.unlink()
        raise
