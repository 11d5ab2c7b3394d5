"""A house's keys: made once, kept from others, rotated, and never shown."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from spinney.house.keys import KEY_VARIABLE, Identity, KeyRing, KeysUnusable, RoundKey, fingerprint, verify
from spinney.storage.private import OpenToOthers


def test_a_signing_key_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "home")
    identity = ring.create()
    assert KeyRing(tmp_path / "home").identity().public == identity.public
    assert stat.S_IMODE(ring.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(ring.current.stat().st_mode) == 0o600
    with pytest.raises(KeysUnusable, match="keys rotate"):
        ring.create()


@pytest.mark.parametrize(("place", "mode", "advice"), [("", 0o750, "chmod 700"), ("identity.pem", 0o640, "chmod 600")])
def test_keys_that_are_open_to_others_are_refused_with_the_command(
    tmp_path: Path, place: str, mode: int, advice: str
) -> None:
    ring = KeyRing(tmp_path)
    ring.create()
    (ring.folder / place).chmod(mode)
    with pytest.raises(OpenToOthers, match=f"{advice} {ring.folder / place}"):
        ring.identity()


def test_a_house_without_a_key_is_told_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(KeysUnusable, match="spinney keys new"):
        KeyRing(tmp_path).identity()


def test_the_key_can_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity.new()
    monkeypatch.setenv(KEY_VARIABLE, identity.pem().decode())
    assert KeyRing(tmp_path).identity().public == identity.public
    assert list(tmp_path.iterdir()) == []


def test_something_else_than_an_ed25519_key_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "not a key at all")
    with pytest.raises(KeysUnusable) as refusal:
        KeyRing(tmp_path).identity()
    assert "not a key at all" not in str(refusal.value)
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    monkeypatch.setenv(KEY_VARIABLE, other.decode())
    with pytest.raises(KeysUnusable, match="Ed25519"):
        KeyRing(tmp_path).identity()


def test_during_a_rotation_the_old_key_signs_until_the_roster_lists_the_new_one(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    old, new = ring.create(), ring.next_identity()
    assert ring.next_identity().public == new.public
    assert ring.identity().public == old.public
    assert ring.identity(listed=old.public).public == old.public
    assert ring.identity(listed=new.public).public == new.public
    assert ring.rotating


def test_the_old_key_is_destroyed_when_only_the_next_is_needed(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    old, new = ring.create(), ring.next_identity()
    for needed in ({old.public}, {old.public, new.public}, set[bytes]()):
        assert not ring.retire_old(needed)
        assert ring.rotating
    assert ring.retire_old({new.public})
    assert not ring.rotating
    assert [identity.public for identity in ring.all().values()] == [new.public]


def test_a_house_whose_key_the_roster_does_not_list_has_to_join_again(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    ring.create()
    with pytest.raises(KeysUnusable, match="join again"):
        ring.identity(listed=Identity.new().public)


def test_a_private_key_is_not_in_what_is_printed() -> None:
    identity, key = Identity.new(), RoundKey.new("ash")
    assert repr(identity) == "Identity()"
    assert repr(key) == "RoundKey(owner='ash')"


def test_a_fingerprint_is_thirty_digits_that_stay_the_same_in_every_version() -> None:
    assert fingerprint(bytes(32)) == "81265 75117 59248 87214 16281 93914"


def test_a_signature_holds_for_its_words_and_its_key_only() -> None:
    identity = Identity.new()
    signature = identity.sign(b"yes")
    assert verify(identity.public, b"yes", signature)
    assert not verify(identity.public, b"no", signature)
    assert not verify(Identity.new().public, b"yes", signature)
    assert not verify(b"no key", b"yes", signature)
