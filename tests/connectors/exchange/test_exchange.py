"""The exchange, held to its contract over a folder and over a real S3 store."""

from __future__ import annotations

import pytest

from spinney.connectors.exchange import BadAddress, Exchange, ExchangeDenied
from spinney.testing.exchange import START, ExchangeContract
from tests.servers.exchange_places import FolderPlace, S3Place


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest) -> FolderPlace | S3Place:
    return request.getfixturevalue(request.param)


class TestExchange(ExchangeContract):
    """Over both."""


def test_a_listing_cannot_be_led_out_of_the_exchange(folder: FolderPlace):
    for study, sender in (("..", None), ("heart", "../.."), ("heart", "")):
        with pytest.raises(BadAddress):
            folder.open().list(study, 7, sender)
    with pytest.raises(BadAddress):
        folder.open().expire(START, "heart", "..")


def test_another_kind_of_store_is_refused_by_name():
    with pytest.raises(ExchangeDenied, match="no exchange over ftp://"):
        Exchange.open("ftp://example.org/exchange")


def test_a_password_in_the_address_is_never_shown():
    assert "hunter2" not in repr(Exchange.open("sftp://north:hunter2@example.org/exchange"))
