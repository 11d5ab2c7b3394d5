"""A folder and a bucket, fresh for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.exchange_places import FolderPlace, S3Place
from tests.servers.relay import Relay
from tests.servers.seaweed import Seaweed


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    with Seaweed(tmp_path_factory.mktemp("seaweed")) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> FolderPlace:
    return FolderPlace(tmp_path)


@pytest.fixture
def s3(seaweed: Seaweed) -> Iterator[S3Place]:
    with Relay(seaweed.port) as relay:
        yield S3Place(seaweed, relay)
