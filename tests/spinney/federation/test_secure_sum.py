"""What each secure sum gives, what it hides, and from whom. docs/secure-sums.md points here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.stats import chisquare

from spinney.errors import Refused, ReleaseRefused, RoundVoid
from spinney.federation import secure_sum
from spinney.federation.secure_sum import Binding, Counts, Noisy, Roll

NAMES = ("adana", "bergen", "cork", "delft")
TREES = 3000
MOST = 511  # rows: nearly all that nine bits can tell


@dataclass(frozen=True)
class House:
    """A hospital with secrets made from its name, so that these tests see the same noise every time."""

    name: str

    def secret(self, purpose: str) -> bytes:
        return hashlib.sha256(f"{self.name} {purpose}".encode()).digest()

    @property
    def key(self) -> bytes:
        return self.secret("key")

    @property
    def seed(self) -> bytes:
        return self.secret("seed")

    @property
    def signer(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.secret("signer"))

    @property
    def counts(self) -> Counts:
        """Four small counts per tree, as confusion counts are."""
        draw = np.random.default_rng(int.from_bytes(self.secret("counts")[:4]))
        return draw.integers(0, 200, (TREES, 4))


HOUSES = {name: House(name) for name in NAMES}
KEYS = {name: secure_sum.public_key(house.key) for name, house in HOUSES.items()}


def asking(participants: Iterable[str] = NAMES, attempt: int = 1) -> Binding:
    return Binding("5eed" * 16, 7, "score", attempt, tuple(sorted(participants)), "fe11" * 16)


def answer(name: str, binding: Binding, counts: Counts | None = None) -> Noisy:
    house = HOUSES[name]
    own = house.counts if counts is None else counts
    return secure_sum.mask(
        own, name=name, private_key=house.key, public_keys=KEYS, private_seed=house.seed, binding=binding
    )


def answers(binding: Binding) -> dict[str, Noisy]:
    return {name: answer(name, binding) for name in binding.participants}


def true_total(names: Iterable[str]) -> Counts:
    return secure_sum.plain_sum({name: HOUSES[name].counts for name in names})


def roll_of(binding: Binding) -> Roll:
    return Roll(binding, tuple((name, secure_sum.reply_digest(a, binding)) for name, a in answers(binding).items()))


def signed(roll: Roll, by: Iterable[str] = NAMES) -> dict[str, bytes]:
    return {name: HOUSES[name].signer.sign(roll.words()) for name in by}


def verify(name: str, words: bytes, signature: bytes) -> bool:
    """The roster: real signatures of the four houses, and nobody else's."""
    if name not in HOUSES:
        return False
    try:
        HOUSES[name].signer.public_key().verify(signature, words)
    except InvalidSignature:
        return False
    return True


def ask_release(
    name: str, roll: Roll, signatures: dict[str, bytes], answered: Binding, already: str | None = None
) -> bytes:
    own_digest = secure_sum.reply_digest(answer(name, answered), answered)
    return secure_sum.release(
        HOUSES[name].seed,
        name=name,
        roll=roll,
        own_digest=own_digest,
        signatures=signatures,
        verify=verify,
        already=already,
    )


def released(binding: Binding, names: Iterable[str] | None = None) -> dict[str, bytes]:
    roll = roll_of(binding)
    signatures = signed(roll, binding.participants)
    return {name: ask_release(name, roll, signatures, binding) for name in names or binding.participants}


def own_mask(name: str, binding: Binding) -> Noisy:
    seed = secure_sum.own_seed(HOUSES[name].seed, name=name, binding=binding)
    return secure_sum.expand(seed, TREES * 4).reshape(TREES, 4)


def pair_mask(name: str, other: str, binding: Binding) -> Noisy:
    """What `name` adds because of `other`; either of the two can compute it, and the second one is asked here."""
    seed = secure_sum.pair_seed(HOUSES[other].key, KEYS[name], name=other, other=name, binding=binding)
    noise = secure_sum.expand(seed, TREES * 4).reshape(TREES, 4)
    return noise if name < other else -noise


def added(parts: Iterable[Noisy]) -> Noisy:
    total: Noisy = np.sum(list(parts), axis=0, dtype=np.uint64)
    return total


def looks_uniform(values: NDArray[np.uint64] | NDArray[np.int64]) -> bool:
    """Each of the eight bytes of a cell takes its 256 values equally often (chi-square, p above one in 100,000)."""
    columns = np.ascontiguousarray(values).reshape(-1).astype("<i8").view(np.uint8).reshape(-1, 8)
    return all(chisquare(np.bincount(column, minlength=256)).pvalue > 1e-5 for column in columns.T)


def differences(values: Noisy) -> Noisy:
    """Every cell of a tree against the first, so that noise that the cells share would fall out."""
    return values[:, 1:] - values[:, :1]


def one_number_for_all(counts: Counts) -> Noisy:
    return counts.astype(np.uint64) + secure_sum.expand(b"x" * 32, 1)


def one_number_per_tree(counts: Counts) -> Noisy:
    return counts.astype(np.uint64) + secure_sum.expand(b"x" * 32, TREES).reshape(-1, 1)


def bounded(counts: Counts) -> Noisy:
    return counts.astype(np.uint64) + secure_sum.expand(b"x" * 32, counts.size).reshape(counts.shape) % 2**48


def repeated_after_hkdf_ends(counts: Counts) -> Noisy:
    return counts.astype(np.uint64) + np.resize(secure_sum.expand(b"x" * 32, 255 * 4), counts.shape)


# ---- The three modes agree -------------------------------------------------------------------------------------


@st.composite
def counts_of_sites(draw: st.DrawFn) -> dict[str, Counts]:
    names = draw(st.sets(st.text(max_size=12), min_size=3, max_size=6))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=5))
    cells = hnp.arrays(np.int64, shape, elements=st.integers(0, 10**9))
    return {name: draw(cells) for name in sorted(names)}


@settings(max_examples=60, deadline=None)
@given(counts_of_sites())
def test_the_three_modes_give_the_same_totals(counts: dict[str, Counts]) -> None:
    binding = asking(counts)
    keys = {name: secure_sum.new_key() for name in counts}
    public = {name: secure_sum.public_key(key) for name, key in keys.items()}
    seeds = {name: secure_sum.new_seed() for name in counts}
    masked = {
        name: secure_sum.mask(
            own, name=name, private_key=keys[name], public_keys=public, private_seed=seeds[name], binding=binding
        )
        for name, own in counts.items()
    }
    opened = {name: secure_sum.own_seed(seed, name=name, binding=binding) for name, seed in seeds.items()}

    owner, *others = counts
    passed = secure_sum.ring_start(counts[owner], seeds[owner], binding, owner)
    for name in others:
        passed = secure_sum.ring_add(passed, counts[name])

    expected = secure_sum.plain_sum(counts)
    np.testing.assert_array_equal(expected, sum(counts.values()))
    np.testing.assert_array_equal(secure_sum.unmask(masked, opened, binding), expected, strict=True)
    few = int(expected.max(initial=0)).bit_length()
    low = {name: cells & np.uint64(2**few - 1) for name, cells in masked.items()}
    np.testing.assert_array_equal(secure_sum.unmask(low, opened, binding, few), expected, strict=True)
    np.testing.assert_array_equal(secure_sum.ring_finish(passed, seeds[owner], binding, owner), expected, strict=True)


def test_a_masked_sum_goes_from_answers_over_a_signed_roll_to_the_total() -> None:
    binding = asking()
    total = secure_sum.unmask(answers(binding), released(binding), binding)
    secure_sum.check_total(total, most=4 * 200)
    np.testing.assert_array_equal(total, true_total(NAMES))


def test_an_answer_made_again_after_a_kill_is_the_same_to_the_byte() -> None:
    assert answer("cork", asking()).tobytes() == answer("cork", asking()).tobytes()


def test_masks_stay_the_same_from_release_to_release_or_sites_could_not_upgrade_one_by_one() -> None:
    zeros = np.zeros((TREES, 4), dtype=np.int64)
    content = secure_sum.reply_digest(answer("bergen", asking(), zeros), asking()).split(":")[1]
    assert content == "d1b36cd95c34abdad20eadeec5af90e71bfd4e192eb9fae248939821c09d7238"


def test_twenty_sites_and_two_thousand_trees_are_masked_in_well_under_a_second() -> None:
    names = [f"site-{number:02}" for number in range(20)]
    keys = {name: House(name).key for name in names}
    public = {name: secure_sum.public_key(key) for name, key in keys.items()}
    counts = np.ones((2000, 4), dtype=np.int64)
    started = time.process_time()
    secure_sum.mask(
        counts,
        name="site-07",
        private_key=keys["site-07"],
        public_keys=public,
        private_seed=secure_sum.new_seed(),
        binding=asking(names),
    )
    assert time.process_time() - started < 0.5


# ---- What one answer shows -------------------------------------------------------------------------------------


def test_what_the_aggregator_sees_of_one_site_is_uniform() -> None:
    for name in NAMES:
        assert looks_uniform(answer(name, asking()))


def test_the_low_bits_of_an_answer_are_those_of_the_whole_and_as_uniform() -> None:
    house, whole = HOUSES["adana"], answer("adana", asking())
    keys = {"name": "adana", "private_key": house.key, "public_keys": KEYS, "private_seed": house.seed}
    low = secure_sum.mask(house.counts, **keys, binding=asking(), bits=8)
    np.testing.assert_array_equal(low, whole & np.uint64(255))
    assert chisquare(np.bincount(low.reshape(-1), minlength=256)).pvalue > 1e-5


def test_the_difference_of_two_cells_tells_nothing() -> None:
    assert looks_uniform(differences(answer("adana", asking())))


@pytest.mark.parametrize("flawed", [one_number_for_all, one_number_per_tree, bounded, repeated_after_hkdf_ends])
def test_the_check_for_uniformity_finds_flawed_masks(flawed: Callable[[Counts], Noisy]) -> None:
    assert not looks_uniform(flawed(HOUSES["adana"].counts))


@pytest.mark.parametrize("flawed", [one_number_for_all, one_number_per_tree])
def test_the_difference_of_two_cells_gives_noise_away_that_cells_share(flawed: Callable[[Counts], Noisy]) -> None:
    counts = HOUSES["adana"].counts
    np.testing.assert_array_equal(differences(flawed(counts)).view(np.int64), counts[:, 1:] - counts[:, :1])


def test_masks_go_on_where_hkdf_ends() -> None:
    noise = secure_sum.expand(HOUSES["adana"].seed, 4 * TREES)
    assert noise.nbytes > 8160
    assert np.unique(noise).size == noise.size


def test_every_mask_hides_alone_even_when_the_others_are_known() -> None:
    binding, counts = asking(), HOUSES["bergen"].counts
    masks = [
        own_mask("bergen", binding),
        *(pair_mask("bergen", other, binding) for other in NAMES if other != "bergen"),
    ]
    hidden = answer("bergen", binding)
    for known in masks:
        assert looks_uniform(hidden)
        hidden = hidden - known
    np.testing.assert_array_equal(hidden.view(np.int64), counts)


def test_two_attempts_with_the_same_counts_differ_uniformly() -> None:
    assert looks_uniform(answer("adana", asking(attempt=1)) - answer("adana", asking(attempt=2)))


OTHER_ASKINGS = {
    "study": replace(asking(), study="5eee" * 16),
    "round": replace(asking(), round=8),
    "step": replace(asking(), step="score-again"),
    "attempt": replace(asking(), attempt=2),
    "participants": asking([*NAMES, "evora"]),
    "manifest": replace(asking(), manifest="fe12" * 16),
}


@pytest.mark.parametrize("changed", OTHER_ASKINGS)
def test_changing_any_part_of_the_binding_changes_all_masks(changed: str) -> None:
    here, there = asking(), OTHER_ASKINGS[changed]
    zeros, seed = np.zeros((TREES, 4), dtype=np.int64), HOUSES["adana"].seed
    assert looks_uniform(own_mask("adana", here) - own_mask("adana", there))
    assert looks_uniform(pair_mask("adana", "bergen", here) - pair_mask("adana", "bergen", there))
    ring_here, ring_there = (secure_sum.ring_start(zeros, seed, binding, "adana") for binding in (here, there))
    assert looks_uniform(ring_here - ring_there)


def test_names_can_not_be_cut_differently_to_give_the_same_binding() -> None:
    assert asking(["a", "b,c", "d"]).words() != asking(["a,b", "c", "d"]).words()
    assert replace(asking(), step="score", round=11).words() != replace(asking(), step="1score", round=1).words()


def test_one_secret_makes_unrelated_noise_for_a_mask_and_for_a_ring() -> None:
    zeros = np.zeros((TREES, 4), dtype=np.int64)
    ring = secure_sum.ring_start(zeros, HOUSES["adana"].seed, asking(), "adana")
    assert looks_uniform(ring - own_mask("adana", asking()))


# ---- Rows that nobody else has ---------------------------------------------------------------------------------


def answer_with_rows_alone(name: str, together: int, rows: int = TREES, bits: int = secure_sum.ALL_BITS) -> Noisy:
    house = HOUSES[name]
    keys = {"name": name, "private_key": house.key, "public_keys": KEYS, "private_seed": house.seed}
    return secure_sum.mask(house.counts[:rows], **keys, binding=asking(), bits=bits, together=together)


def guards_for(owner: str, by: Iterable[str] = NAMES) -> list[bytes]:
    """What others give away of an owner's rows when they release."""
    binding = asking()
    given = {
        name: secure_sum.guards(HOUSES[name].key, name=name, public_keys=KEYS, binding=binding)
        for name in by
        if name != owner
    }
    return [seeds[binding.others(name).index(owner)] for name, seeds in given.items()]


def own(name: str) -> bytes:
    return secure_sum.own_seed(HOUSES[name].seed, name=name, binding=asking())


def test_rows_that_nobody_else_has_are_noise_until_everybody_has_released() -> None:
    together = TREES - 1000
    masked = answer_with_rows_alone("adana", together)
    assert looks_uniform(masked[together:])
    np.testing.assert_array_equal(masked[:together], answer("adana", asking())[:together])
    for missing in NAMES[1:]:
        released_by = [name for name in NAMES if name != missing]
        early = secure_sum.unmask_alone(masked, own("adana"), guards_for("adana", released_by), together)
        assert looks_uniform(early)
    assert looks_uniform(secure_sum.unmask_alone(masked, own("bergen"), guards_for("adana"), together))
    alone = secure_sum.unmask_alone(masked, own("adana"), guards_for("adana"), together)
    np.testing.assert_array_equal(alone, HOUSES["adana"].counts[together:], strict=True)


def test_no_guard_is_given_away_for_another_s_rows_or_twice() -> None:
    given = [seed for owner in NAMES for seed in guards_for(owner)]
    assert len({*given}) == len(NAMES) * (len(NAMES) - 1)
    shared = secure_sum.pair_seed(HOUSES["adana"].key, KEYS["bergen"], name="adana", other="bergen", binding=asking())
    assert shared not in given


def test_rows_that_are_added_up_add_up_whatever_is_behind_them() -> None:
    rows = {name: 2000 + 100 * place for place, name in enumerate(NAMES)}
    masked = {name: answer_with_rows_alone(name, 2000, rows[name], bits=10) for name in NAMES}
    added_up = {name: cells[:2000] for name, cells in masked.items()}
    total = secure_sum.unmask(added_up, {name: own(name) for name in NAMES}, asking(), 10)
    np.testing.assert_array_equal(total, true_total(NAMES)[:2000], strict=True)
    for name in NAMES:
        alone = secure_sum.unmask_alone(masked[name], own(name), guards_for(name), 2000, 10)
        np.testing.assert_array_equal(alone, HOUSES[name].counts[2000 : rows[name]], strict=True)


# ---- A late answer ---------------------------------------------------------------------------------------------

FIRST, SECOND = asking(NAMES, attempt=1), asking(["adana", "bergen", "cork"], attempt=2)  # delft was thought lost


def test_an_answer_that_comes_late_does_not_unmask_its_sender() -> None:
    first, second = answers(FIRST), answers(SECOND)
    late = added(first.values()) - added(second.values())
    assert looks_uniform(late)

    total = secure_sum.unmask(second, released(SECOND), SECOND)
    assert looks_uniform(added(first.values()) - total.view(np.uint64))


def test_without_masks_of_their_own_the_late_answer_would_be_read_off() -> None:
    first = added(answer(name, FIRST) - own_mask(name, FIRST) for name in FIRST.participants)
    second = added(answer(name, SECOND) - own_mask(name, SECOND) for name in SECOND.participants)
    np.testing.assert_array_equal((first - second).view(np.int64), HOUSES["delft"].counts)


def test_the_seeds_released_for_the_second_asking_open_nothing_of_the_first() -> None:
    """Even if everybody signed both rolls, and the late site in good faith released for the first."""
    hidden = added(answers(FIRST).values()) - own_mask("delft", FIRST)
    for name, seed in released(SECOND).items():
        assert seed != HOUSES[name].seed
        hidden = hidden - secure_sum.expand(seed, TREES * 4).reshape(TREES, 4)
    assert looks_uniform(hidden - true_total(SECOND.participants).view(np.uint64))


def test_nobody_releases_for_a_roll_that_lacks_somebody() -> None:
    full = roll_of(FIRST)
    short = replace(full, digests=full.digests[:3])
    for name in SECOND.participants:
        with pytest.raises(ReleaseRefused, match="adana, bergen, cork but adana, bergen, cork, delft were asked"):
            ask_release(name, short, signed(short), FIRST)


def test_a_site_that_has_released_for_one_roll_releases_for_no_other() -> None:
    first = roll_of(FIRST)
    with pytest.raises(ReleaseRefused, match="only once"):
        ask_release("adana", first, signed(first), FIRST, already=roll_of(SECOND).digest)


def test_a_site_that_was_killed_releases_the_same_seed_for_the_same_roll_again() -> None:
    roll = roll_of(FIRST)
    once = ask_release("adana", roll, signed(roll), FIRST)
    assert ask_release("adana", roll, signed(roll), FIRST, already=roll.digest) == once


# ---- Rolls that are not what they should be --------------------------------------------------------------------


def test_a_forged_signature_is_refused_with_the_name_of_its_site() -> None:
    roll = roll_of(FIRST)
    forged = signed(roll) | {"cork": HOUSES["delft"].signer.sign(roll.words())}
    with pytest.raises(ReleaseRefused, match="not validly signed by cork"):
        ask_release("adana", roll, forged, FIRST)


def test_a_missing_signature_is_refused() -> None:
    roll = roll_of(FIRST)
    with pytest.raises(ReleaseRefused, match="not validly signed by delft"):
        ask_release("adana", roll, signed(roll, by=NAMES[:3]), FIRST)


def test_a_signature_for_one_roll_does_not_serve_for_another() -> None:
    with pytest.raises(ReleaseRefused, match="not validly signed by adana, bergen, cork"):
        ask_release("adana", roll_of(SECOND), signed(roll_of(FIRST)), SECOND)


def with_digest(roll: Roll, name: str, digest: str) -> Roll:
    return replace(roll, digests=tuple(sorted((dict(roll.digests) | {name: digest}).items())))


def test_a_roll_with_another_digest_for_this_site_is_refused_although_all_signed() -> None:
    roll = roll_of(FIRST)
    swapped = with_digest(roll, "adana", dict(roll.digests)["bergen"])
    with pytest.raises(ReleaseRefused, match="does not list the answer that adana gave"):
        ask_release("adana", swapped, signed(swapped), FIRST)


def test_a_roll_with_another_digest_for_somebody_else_lacks_that_signature() -> None:
    roll = roll_of(FIRST)
    swapped = with_digest(roll, "bergen", dict(roll.digests)["cork"])
    digest = dict(roll.digests)["bergen"]
    with pytest.raises(ReleaseRefused, match="does not list the answer that bergen gave"):
        secure_sum.check_roll(swapped, name="bergen", own_digest=digest)
    with pytest.raises(ReleaseRefused, match="not validly signed by bergen"):
        ask_release("adana", swapped, signed(swapped) | {"bergen": signed(roll)["bergen"]}, FIRST)


def test_a_roll_with_a_puppet_is_refused() -> None:
    roll = roll_of(FIRST)
    joined = with_digest(roll, "puppet", dict(roll.digests)["delft"])
    signatures = signed(joined) | {"puppet": HOUSES["delft"].signer.sign(joined.words())}
    with pytest.raises(ReleaseRefused, match=r"delft, puppet but adana.*not validly signed by puppet"):
        ask_release("adana", joined, signatures, FIRST)


def test_a_roll_that_names_a_site_twice_is_refused() -> None:
    roll = roll_of(FIRST)
    doubled = replace(roll, digests=(*roll.digests, roll.digests[-1]))
    with pytest.raises(ReleaseRefused, match="delft, delft but"):
        ask_release("adana", doubled, signed(doubled), FIRST)


def test_a_roll_for_an_asking_that_the_site_never_answered_is_refused() -> None:
    """Otherwise its seed for that asking would be known before it answers."""
    later = Roll(asking(NAMES, attempt=3), roll_of(FIRST).digests)
    assert later.words() != roll_of(FIRST).words()
    with pytest.raises(ReleaseRefused, match="answers to another asking"):
        ask_release("adana", later, signed(later), FIRST)


def test_an_honest_roll_may_be_signed() -> None:
    roll = roll_of(FIRST)
    for name, digest in roll.digests:
        secure_sum.check_roll(roll, name=name, own_digest=digest)


def test_a_digest_names_the_cells_their_shape_and_the_asking() -> None:
    cells = answer("adana", FIRST)
    changed = cells.copy()
    changed[0, 0] += np.uint64(1)
    digests = {
        secure_sum.reply_digest(cells, FIRST),
        secure_sum.reply_digest(changed, FIRST),
        secure_sum.reply_digest(cells.reshape(4, TREES), FIRST),
        secure_sum.reply_digest(cells, asking(attempt=2)),
    }
    assert len(digests) == 4


@pytest.mark.parametrize("groups", [1, 3, 20])
@pytest.mark.parametrize("trees", [1, 2, 5, 16, 40])
def test_noise_is_an_impossible_total_also_where_trees_are_few(trees: int, groups: int) -> None:
    bits = secure_sum.bits_for(MOST, 2 * groups * (trees + 1))
    assert looks_possible(trees, bits) ** groups < 1e-6


def test_noise_of_five_trees_hardly_ever_looks_possible_even_without_bits_to_spare() -> None:
    assert looks_possible(5, MOST.bit_length()) < 1 / 30_000


def looks_possible(trees: int, bits: int) -> float:
    """How often random cases of a group do not exceed the rows, and random hits of its trees not the cases."""
    cases = np.random.default_rng(trees).integers(0, MOST + 1, (100_000, 2))
    within = cases.sum(axis=1) <= MOST
    hits = ((cases + 1) / 2**bits).prod(axis=1) ** trees
    return float(np.mean(within * hits) * ((MOST + 1) / 2**bits) ** 2)


# ---- Who colludes with whom ------------------------------------------------------------------------------------


def seen_by(colluders: tuple[str, ...], victim: str, binding: Binding) -> Noisy:
    """The victim's answer without the masks that the colluders share with it."""
    return answer(victim, binding) - added(pair_mask(victim, other, binding) for other in colluders)


def test_all_others_and_the_aggregator_see_a_site_only_after_its_release() -> None:
    others = ("adana", "cork", "delft")
    hidden = seen_by(others, "bergen", FIRST)
    assert looks_uniform(hidden)
    seed = released(FIRST, ["bergen"])["bergen"]
    opened = hidden - secure_sum.expand(seed, TREES * 4).reshape(TREES, 4)
    np.testing.assert_array_equal(opened.view(np.int64), HOUSES["bergen"].counts)


def test_all_others_but_one_and_the_aggregator_learn_only_the_sum_of_the_two_that_are_left() -> None:
    colluders, seeds = ("cork", "delft"), released(FIRST)
    opened = {
        victim: seen_by(colluders, victim, FIRST) - secure_sum.expand(seeds[victim], TREES * 4).reshape(TREES, 4)
        for victim in ("adana", "bergen")
    }
    assert looks_uniform(opened["adana"])
    assert looks_uniform(opened["bergen"])
    both = (opened["adana"] + opened["bergen"]).view(np.int64)
    np.testing.assert_array_equal(both, true_total(["adana", "bergen"]))


# ---- Ring ------------------------------------------------------------------------------------------------------


def ring(names: tuple[str, ...], attempt: int = 1) -> list[Noisy]:
    """What passes from each site to the next; the last comes back to the first, the owner of the trees."""
    owner, *others = names
    passed = [secure_sum.ring_start(HOUSES[owner].counts, HOUSES[owner].seed, asking(names, attempt), owner)]
    for name in others:
        passed.append(secure_sum.ring_add(passed[-1], HOUSES[name].counts))
    return passed


def test_one_neighbour_in_a_ring_sees_uniform_values() -> None:
    for passed in ring(NAMES):
        assert looks_uniform(passed)
        assert looks_uniform(differences(passed))


def test_two_neighbours_in_a_ring_that_collude_see_the_site_between_them() -> None:
    _, to_cork, from_cork, _ = ring(NAMES)
    np.testing.assert_array_equal((from_cork - to_cork).view(np.int64), HOUSES["cork"].counts)


def test_two_rings_with_the_same_counts_differ_uniformly() -> None:
    assert looks_uniform(ring(NAMES, attempt=1)[1] - ring(NAMES, attempt=2)[1])


def test_the_owner_of_a_ring_learns_the_totals() -> None:
    total = secure_sum.ring_finish(ring(NAMES)[-1], HOUSES["adana"].seed, asking(), "adana")
    np.testing.assert_array_equal(total, true_total(NAMES))


def test_a_ring_that_is_asked_again_without_a_site_shows_that_site_to_the_owner() -> None:
    seed = HOUSES["adana"].seed
    first = secure_sum.ring_finish(ring(NAMES)[-1], seed, FIRST, "adana")
    second = secure_sum.ring_finish(ring(SECOND.participants, attempt=2)[-1], seed, SECOND, "adana")
    np.testing.assert_array_equal(first - second, HOUSES["delft"].counts)


# ---- Refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [(), ("adana",), ("adana", "bergen")])
def test_fewer_than_three_sites_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="trusted-third-party"):
        asking(names)


@pytest.mark.parametrize("names", [("bergen", "adana", "cork"), ("adana", "adana", "bergen")])
def test_participants_in_another_order_or_named_twice_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match="sorted tuple of different names"):
        replace(asking(), participants=names)


def test_a_site_that_was_not_asked_does_not_answer() -> None:
    with pytest.raises(Refused, match="delft is not among the participants"):
        answer("delft", SECOND)
    with pytest.raises(Refused, match="delft is not among the participants"):
        secure_sum.ring_start(HOUSES["delft"].counts, HOUSES["delft"].seed, SECOND, "delft")


def mask_with(keys: dict[str, bytes]) -> Noisy:
    house = HOUSES["adana"]
    return secure_sum.mask(
        house.counts, name="adana", private_key=house.key, public_keys=keys, private_seed=house.seed, binding=FIRST
    )


def test_a_missing_key_is_refused_with_the_name_of_its_site() -> None:
    with pytest.raises(Refused, match="no key for this round from cork"):
        mask_with({name: key for name, key in KEYS.items() if name != "cork"})


def test_a_list_of_keys_with_another_key_for_this_site_is_refused() -> None:
    with pytest.raises(Refused, match="somebody has replaced it"):
        mask_with(KEYS | {"adana": KEYS["bergen"]})


FIELD = 2**255 - 19
LOW_ORDER = [
    0,
    1,
    FIELD - 1,
    FIELD,
    FIELD + 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
]


@pytest.mark.parametrize("point", LOW_ORDER)
def test_a_low_order_key_that_would_make_the_secret_known_is_refused(point: int) -> None:
    with pytest.raises(Refused, match="the key of cork is not a proper X25519 key"):
        mask_with(KEYS | {"cork": point.to_bytes(32, "little")})


def test_a_key_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(Refused, match="the key of cork is not a proper X25519 key"):
        mask_with(KEYS | {"cork": b"short"})


def test_a_seed_of_the_wrong_length_is_never_used_as_a_secret() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        secure_sum.own_seed(b"", name="adana", binding=FIRST)


def test_numbers_that_are_not_whole_are_refused() -> None:
    with pytest.raises(Refused, match="not float64"):
        answer("adana", FIRST, np.full((2, 4), 0.5))


def test_a_step_without_somebodys_answer_or_seed_is_void_and_names_the_absent() -> None:
    replies, seeds = answers(SECOND), released(SECOND)
    with pytest.raises(RoundVoid, match="attempt 2: no released seeds from cork"):
        secure_sum.unmask(replies, {name: seeds[name] for name in ("adana", "bergen")}, SECOND)
    with pytest.raises(RoundVoid, match="attempt 2: no answers from adana"):
        secure_sum.unmask({name: replies[name] for name in ("bergen", "cork")}, seeds, SECOND)


def test_an_answer_from_a_site_that_was_not_asked_is_not_added() -> None:
    with pytest.raises(Refused, match="answers from delft, not asked"):
        secure_sum.unmask(answers(SECOND) | {"delft": answer("delft", FIRST)}, released(SECOND), SECOND)


def test_a_released_seed_of_the_wrong_length_is_refused_with_the_name_of_its_site() -> None:
    with pytest.raises(Refused, match="cork released a seed of 3 bytes"):
        secure_sum.unmask(answers(SECOND), released(SECOND) | {"cork": b"abc"}, SECOND)


def test_answers_of_different_shapes_are_refused_rather_than_repeated_to_fit() -> None:
    row = np.ones(4, dtype=np.int64)
    with pytest.raises(Refused, match=r"adana \(4,\), bergen \(3000, 4\)"):
        secure_sum.plain_sum({"adana": row, "bergen": HOUSES["bergen"].counts})
    with pytest.raises(Refused, match="different shapes"):
        secure_sum.ring_add(ring(NAMES)[0], row)
    with pytest.raises(Refused, match="different shapes"):
        secure_sum.unmask(answers(SECOND) | {"cork": answer("cork", SECOND, row)}, released(SECOND), SECOND)


def test_a_sum_of_nobody_is_void() -> None:
    with pytest.raises(RoundVoid, match="nobody answered"):
        secure_sum.plain_sum({})


def test_totals_from_zero_to_all_rows_are_possible() -> None:
    secure_sum.check_total(np.array([[0, 800, 3, 4]]), most=800)


@pytest.mark.parametrize("impossible", [-1, 801])
def test_a_total_out_of_range_voids_the_step(impossible: int) -> None:
    with pytest.raises(RoundVoid, match=r"1 of 4 summed counts are outside 0\.\.800"):
        secure_sum.check_total(np.array([[0, impossible, 3, 4]]), most=800)


def test_a_wrong_seed_or_a_changed_answer_gives_an_impossible_total() -> None:
    wrong = released(SECOND) | {"cork": secure_sum.new_seed()}
    with pytest.raises(RoundVoid, match="12000 of 12000"):
        secure_sum.check_total(secure_sum.unmask(answers(SECOND), wrong, SECOND), most=800)


def test_every_key_and_seed_is_new() -> None:
    assert secure_sum.new_key() != secure_sum.new_key()
    assert secure_sum.new_seed() != secure_sum.new_seed()
