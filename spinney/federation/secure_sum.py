"""The counts of all sites, and nobody's in particular: masked, ring and trusted-third-party sums.

All sums are modulo 2**64, where adding uniform noise hides a count perfectly. The low bits of a masked number are a
masked number modulo a smaller power of two, just as hidden, so only as many are sent as the total needs. What each mode
hides from whom is in docs/secure-sums.md. Everything a site has to keep is bytes or text that the caller stores and
hands in again.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from spinney.errors import Refused, ReleaseRefused, RoundVoid

Counts = NDArray[np.int64]
Noisy = NDArray[np.uint64]

FEWEST = 3  # with two sites each learns the other's counts by taking its own off the total
SEED_BYTES = 32
ALL_BITS = 64


@dataclass(frozen=True)
class Binding:
    """One asking of one step. Noise made for it cancels only within it and says nothing about any other."""

    study: str
    round: int
    step: str
    attempt: int
    participants: tuple[str, ...]
    manifest: str

    def __post_init__(self) -> None:
        if self.participants != tuple(sorted(set(self.participants))):
            raise Refused("the participants of a secure sum must be a sorted tuple of different names")
        if len(self.participants) < FEWEST:
            raise Refused(
                f"a secure sum of {len(self.participants)} sites would show each the others' counts: it takes at least "
                f"{FEWEST}; a smaller study can only use secure_sum: trusted-third-party"
            )

    def words(self) -> bytes:
        """The same bytes for the same asking, and for no other."""
        where = (self.study, self.round, self.step, self.attempt)
        return _words("spinney binding 1", *where, self.participants, self.manifest)

    def others(self, name: str) -> tuple[str, ...]:
        """All participants but one."""
        return tuple(other for other in self.participants if other != name)

    @classmethod
    def read(cls, words: bytes) -> Binding:
        """The asking behind words that this house has kept."""
        _, study, round_, step, attempt, participants, manifest = json.loads(words)
        return cls(study, round_, step, attempt, tuple(participants), manifest)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.words()).hexdigest()


@dataclass(frozen=True)
class Roll:
    """Who answered an asking, and the digest of each answer, in the order of the names."""

    binding: Binding
    digests: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, binding: Binding, answers: Sequence[str]) -> Roll:
        """From what is told of it to somebody who knows the asking: one answer of each participant."""
        if len(answers) != len(binding.participants):
            raise ReleaseRefused(f"the roll has {len(answers)} answers of {len(binding.participants)} participants")
        pairs = zip(binding.participants, answers, strict=True)
        return cls(binding, tuple((name, f"{binding.digest}:{answer}") for name, answer in pairs))

    @property
    def answers(self) -> tuple[str, ...]:
        """What is told of it."""
        return tuple(digest.removeprefix(f"{self.binding.digest}:") for _, digest in self.digests)

    def words(self) -> bytes:
        """What every participant signs, after `check_roll`."""
        return _words("spinney roll 1", self.binding.digest, self.digests)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.words()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------
# Seeds and noise


def new_key() -> bytes:
    """A private X25519 key, made for one round and destroyed after it."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def new_seed() -> bytes:
    """A secret that only this site knows, for its own masks or for its ring's noise."""
    return secrets.token_bytes(SEED_BYTES)


def expand(seed: bytes, cells: int) -> Noisy:
    """One uniform number per cell. SHAKE-256 has no end, while HKDF stops after 255 trees."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, this one has {len(seed)}")
    stream = hashlib.shake_256(seed).digest(8 * cells)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def own_seed(private_seed: bytes, *, name: str, binding: Binding) -> bytes:
    """The seed of this site's own mask in one asking: what `release` gives away, never the secret behind it."""
    return _derive(private_seed, "spinney own mask 1", binding.digest, name)


def pair_seed(private_key: bytes, other_key: bytes, *, name: str, other: str, binding: Binding) -> bytes:
    """The seed that two sites share in one asking; each computes it with its own private key."""
    own = X25519PrivateKey.from_private_bytes(private_key)
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(other_key))
    except ValueError:  # a wrong length, or a low-order point that would make the secret known to everybody
        raise Refused(f"the key of {other} is not a proper X25519 key; {other} has to join with a new one") from None
    pair = sorted([(name, own.public_key().public_bytes_raw().hex()), (other, other_key.hex())])
    return _derive(shared, "spinney pair mask 1", binding.digest, pair)


def guard_seed(pair: bytes, owner: str) -> bytes:
    """From what two sites share in one asking: guards the rows that only one of them, their owner, has in it."""
    return _derive(pair, "spinney guard 1", owner)


def _derive(secret: bytes, *purpose: object) -> bytes:
    if len(secret) != SEED_BYTES:
        raise ValueError(f"a secret has {SEED_BYTES} bytes, this one has {len(secret)}")
    info = hashlib.sha256(_words(*purpose)).digest()
    return HKDF(algorithm=hashes.SHA256(), length=SEED_BYTES, salt=None, info=info).derive(secret)


def _words(*parts: object) -> bytes:
    return json.dumps(parts, separators=(",", ":")).encode()


# ---------------------------------------------------------------------------------------------------------------
# masked


def mask(
    counts: Counts,
    *,
    name: str,
    private_key: bytes,
    public_keys: Mapping[str, bytes],
    private_seed: bytes,
    binding: Binding,
    bits: int = ALL_BITS,
    together: int | None = None,
) -> Noisy:
    """This site's answer: the low bits of its counts under a mask per pair of sites and a mask of its own.

    Only the first `together` rows are to be added up. Those behind them are this site's alone: there is nobody whose
    masks would cancel, and each other participant guards them with a seed that it releases when it releases its own.
    Never call it with other counts under the same binding: the difference of the answers would be that of the counts.
    """
    _check_keys(name, private_key, public_keys, binding)
    cells = _cells(counts)
    added, alone = np.split(cells, [np.atleast_1d(counts)[:together].size])
    for other in binding.others(name):
        pair = pair_seed(private_key, public_keys[other], name=name, other=other, binding=binding)
        noise = expand(pair, added.size)
        added += noise if name < other else -noise
        alone += expand(guard_seed(pair, name), alone.size)
    cells += expand(own_seed(private_seed, name=name, binding=binding), cells.size)
    return _low(cells, bits).reshape(counts.shape)


def guards(private_key: bytes, *, name: str, public_keys: Mapping[str, bytes], binding: Binding) -> tuple[bytes, ...]:
    """What this site gives away for the rows that each of the others has alone, when its own mask comes off, too."""
    return tuple(
        guard_seed(pair_seed(private_key, public_keys[other], name=name, other=other, binding=binding), other)
        for other in binding.others(name)
    )


def bits_for(most: int, cells: int) -> int:
    """Bits that tell totals up to `most`, and some to spare where cells are few: a sum of noise must be impossible."""
    return min(most.bit_length() + ALL_BITS // cells, ALL_BITS)


def check_bits(bits: int, most: int) -> None:
    """Refuses to send so few bits of a number that not even this site's own counts fit."""
    if not most.bit_length() <= bits <= ALL_BITS:
        raise Refused(f"{bits} bits are not enough for a count of this site, or more than a number has")


def _check_keys(name: str, private_key: bytes, public_keys: Mapping[str, bytes], binding: Binding) -> None:
    if name not in binding.participants:
        raise Refused(f"{name} is not among the participants of {binding.step}, attempt {binding.attempt}")
    missing = [other for other in binding.participants if other not in public_keys and other != name]
    if missing:
        raise Refused(f"no key for this round from {', '.join(missing)}")
    own = public_key(private_key)
    if public_keys.get(name, own) != own:
        raise Refused(f"the round's keys name another key for {name} than its own: somebody has replaced it")


def reply_digest(masked: Noisy, binding: Binding) -> str:
    """Names one answer. It starts with its asking, so that a roll can't list an answer to another one."""
    content = hashlib.sha256(_words("spinney reply 1", masked.shape))
    content.update(np.ascontiguousarray(masked, dtype="<u8").tobytes())
    return f"{binding.digest}:{content.hexdigest()}"


def check_roll(roll: Roll, *, name: str, own_digest: str) -> None:
    """Refuses to sign a roll that is not about everybody who was asked, or not about this site's own answer."""
    _raise_if_any(_objections(roll, name, own_digest))


def release(
    private_seed: bytes,
    *,
    name: str,
    roll: Roll,
    own_digest: str,
    signatures: Mapping[str, bytes],
    verify: Callable[[str, bytes, bytes], bool],
    already: str | None,
) -> bytes:
    """Gives away the seed of this site's own mask, for one roll per step that all on it have signed.

    `verify(site, words, signature)` knows the roster. `already` is the digest of the roll that this site has released
    for in this (study, round, step), in whichever attempt; the caller stores `roll.digest` *before* the seed leaves.
    """
    reasons = list(_objections(roll, name, own_digest))
    words = roll.words()
    unsigned = [site for site, _ in roll.digests if site not in signatures or not verify(site, words, signatures[site])]
    if unsigned:
        reasons.append(f"not validly signed by {', '.join(unsigned)}")
    if already is not None and already != roll.digest:
        reasons.append("this site has released for another roll of this step, and does so only once")
    _raise_if_any(reasons)
    return own_seed(private_seed, name=name, binding=roll.binding)


def _objections(roll: Roll, name: str, own_digest: str) -> Iterator[str]:
    asked, listed = roll.binding.participants, tuple(site for site, _ in roll.digests)
    if listed != asked:
        yield f"it lists {', '.join(listed)} but {', '.join(asked)} were asked"
    if (name, own_digest) not in roll.digests:
        yield f"it does not list the answer that {name} gave"
    foreign = [site for site, digest in roll.digests if not digest.startswith(f"{roll.binding.digest}:")]
    if foreign:
        yield f"it lists answers to another asking, from {', '.join(foreign)}"


def _raise_if_any(reasons: Iterable[str]) -> None:
    if text := "; ".join(reasons):
        raise ReleaseRefused(f"the roll is refused: {text}")


def unmask(masked: Mapping[str, Noisy], seeds: Mapping[str, bytes], binding: Binding, bits: int = ALL_BITS) -> Counts:
    """The aggregator's sum, from every participant's answer and released seed."""
    _check_everybody("answers", masked, binding)
    _check_everybody("released seeds", seeds, binding)
    total, shape = _total(masked)
    for site, seed in seeds.items():
        if len(seed) != SEED_BYTES:
            raise Refused(f"{site} released a seed of {len(seed)} bytes instead of {SEED_BYTES}")
        total = total - expand(seed, total.size)
    return modulo(total.view(np.int64), bits).reshape(shape)


def unmask_alone(masked: Noisy, seed: bytes, guarded: Iterable[bytes], together: int, bits: int = ALL_BITS) -> Counts:
    """What is behind the rows that are added up: one site's own, with its own mask and everybody's guards taken off."""
    cells = (_cells(masked) - expand(seed, masked.size))[masked[:together].size :]
    for guard in guarded:
        cells -= expand(guard, cells.size)
    return modulo(cells.view(np.int64), bits).reshape(masked[together:].shape)


def _check_everybody(what: str, given: Mapping[str, object], binding: Binding) -> None:
    where = f"{binding.step}, attempt {binding.attempt}"
    missing = [site for site in binding.participants if site not in given]
    if missing:
        raise RoundVoid(f"{where}: no {what} from {', '.join(missing)}")
    if strangers := sorted(set(given) - set(binding.participants)):
        raise Refused(f"{where}: {what} from {', '.join(strangers)}, not asked")


def check_total(total: Counts, most: int) -> None:
    """Voids the step when a summed count is impossible: a site lied, or masks did not cancel."""
    impossible = int(np.count_nonzero((total < 0) | (total > most)))
    if impossible:
        raise RoundVoid(
            f"{impossible} of {total.size} summed counts are outside 0..{most}, the number of participating rows: "
            "an answer or a released seed was wrong; every site keeps the model that it has"
        )


# ---------------------------------------------------------------------------------------------------------------
# ring


def ring_start(counts: Counts, seed: bytes, binding: Binding, owner: str) -> Noisy:
    """What the owner of the trees sends to its neighbour: its counts under noise that only it can take off."""
    cells = _cells(counts)
    return (cells + _ring_noise(seed, binding, owner, cells.size)).reshape(counts.shape)


def ring_add(passed: Noisy, counts: Counts) -> Noisy:
    """What a site passes on. Only once per tree: a ring that broke is not asked again with fewer sites."""
    total, shape = _total({"passed": passed, "own": counts})
    return total.reshape(shape)


def ring_finish(passed: Noisy, seed: bytes, binding: Binding, owner: str) -> Counts:
    """The sum, when it has come round to the owner again."""
    cells = _cells(passed)
    return (cells - _ring_noise(seed, binding, owner, cells.size)).view(np.int64).reshape(passed.shape)


def _ring_noise(seed: bytes, binding: Binding, owner: str, cells: int) -> Noisy:
    if owner not in binding.participants:
        raise Refused(f"{owner} is not among the participants of {binding.step}, attempt {binding.attempt}")
    return expand(_derive(seed, "spinney ring noise 1", binding.digest, owner), cells)


# ---------------------------------------------------------------------------------------------------------------
# trusted third party


def plain_sum(counts: Mapping[str, Counts]) -> Counts:
    """The sum by somebody whom all sites let see their counts."""
    total, shape = _total(counts)
    return total.view(np.int64).reshape(shape)


# ---------------------------------------------------------------------------------------------------------------
# Arithmetic modulo 2**64, on flat arrays: NumPy lets these wrap around, but warns when a single number does


def _cells(values: Counts | Noisy) -> Noisy:
    if values.dtype not in (np.int64, np.uint64):
        raise Refused(f"secure sums add 64-bit whole numbers, not {values.dtype}")
    return np.array(values).reshape(-1).view(np.uint64)


def modulo(counts: Counts, bits: int) -> Counts:
    """Whole numbers that are known by their low bits only."""
    return _low(counts.view(np.uint64), bits).view(np.int64)


def _low(cells: Noisy, bits: int) -> Noisy:
    return cells & np.uint64(2**bits - 1)


def _total(parts: Mapping[str, Counts | Noisy]) -> tuple[Noisy, tuple[int, ...]]:
    if not parts:
        raise RoundVoid("nobody answered, so there is nothing to add up")
    shapes = {part.shape for part in parts.values()}
    if len(shapes) > 1:  # NumPy would repeat the smaller one
        raise Refused(f"different shapes: {', '.join(f'{site} {part.shape}' for site, part in parts.items())}")
    shape = shapes.pop()
    total = np.zeros(math.prod(shape), dtype=np.uint64)
    for part in parts.values():
        total += _cells(part)
    return total, shape
