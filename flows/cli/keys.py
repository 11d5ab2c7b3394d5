"""spinney keys: the key that this house signs with."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click


def home_option(command: Callable[..., None]) -> Callable[..., None]:
    """The house's folder: given itself, by the site's file, or by the settings file that is here."""

    @click.option(
        "--home",
        type=click.Path(path_type=Path),
        envvar="SPINNEY_HOME",
        show_default="SPINNEY_HOME, that of the site.yaml or coordinator.yaml here, or spinney-home",
        help="The house's folder.",
    )
    @click.option("--site", "site_file", type=click.Path(path_type=Path), help="Site's file, instead of --home.")
    @wraps(command)
    def with_home(*arguments: Any, home: Path | None, site_file: Path | None, **options: Any) -> None:
        command(*arguments, home=_home(home, site_file), **options)

    return with_home


def _home(home: Path | None, site_file: Path | None) -> Path:
    site, coordinator = site_file or Path("site.yaml"), Path("coordinator.yaml")
    if site_file is not None or (home is None and site.exists()):
        from spinney.configuration.site import read_site

        return read_site(site).home
    if home is None and coordinator.exists():
        from spinney.configuration.house import read_coordinator

        return read_coordinator(coordinator).home
    return home or Path("spinney-home")


@click.group()
def keys() -> None:
    """Make, show and rotate the key that this house signs with.

    Other houses know this house by its key. They compare its fingerprint by telephone.
    """


@keys.command(short_help="Make the house's first key.")
@home_option
def new(home: Path) -> None:
    """Make the house's first signing key, in a file that nobody else may read.

    Back up the folder `keys`, but not `keys/rounds` in it: those keys have to be gone when their round is over.
    """
    from spinney.house.keys import KeyRing, fingerprint

    ring = KeyRing(home)
    identity = ring.create()
    click.echo(f"{ring.current}\nfingerprint {fingerprint(identity.public)}")


@keys.command(short_help="Show key and fingerprint.")
@home_option
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
def show(home: Path, as_json: bool) -> None:
    """Show public keys and fingerprints; never a private key."""
    from spinney.house.keys import KeyRing, fingerprint

    ring = KeyRing(home)
    ring.identity()  # says what to do if there is none
    rows = [
        {"where": where, "public": identity.public.hex(), "fingerprint": fingerprint(identity.public)}
        for where, identity in ring.all().items()
    ]
    if as_json:
        click.echo(json.dumps({"keys": rows, "rotating": ring.rotating}, indent=2))
        return
    for row in rows:
        click.echo(f"{row['where']}\n  public key   {row['public']}\n  fingerprint  {row['fingerprint']}")
    if ring.rotating:
        click.echo("A rotation is under way: the first key is used until the roster lists the last one.")


@keys.command(short_help="Replace the key, signed by the old one.")
@home_option
@click.option("--output", "-o", type=click.Path(path_type=Path), default="rotation.json", show_default=True)
def rotate(home: Path, output: Path) -> None:
    """Make the next key, and a document for the coordinator in which the old key vouches for it.

    The old key is used until the roster lists the new one, and destroyed then. Again before that: the same document.
    """
    from spinney.house.keys import KeyRing, fingerprint
    from spinney.house.renewal import key_in_use
    from spinney.house.roster import rotation, write_document

    old, following = key_in_use(home), KeyRing(home).next_identity()
    write_document(rotation(old, following), output)
    click.echo(f"new fingerprint {fingerprint(following.public)}")
    click.echo(f"Next: send {output} to the coordinator. Nothing changes until the roster lists the new key.")
    click.echo("(The coordinator itself: spinney coordinator rotate FILE.)")
