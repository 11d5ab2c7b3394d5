"""What can go wrong with the exchange.

ExchangeError
├── BadAddress               a name that cannot be part of an address
├── TransientExchangeError   the store is away, busy or full: the same call may succeed later
├── ExchangeDenied           rights, keys or settings that people have to mend; trying again changes nothing
│   └── Unreadable           one object only: the exchange itself lets this house in (also a Refused)
├── SecondCopy               a different message is already at this address (also a Refused)
└── ObjectTooLarge           more bytes than the reader allows (also a Refused)

Each is one line that says what to do, and never repeats what a library said: that could hold a password.
"""

from __future__ import annotations

from spinney.errors import Refused, SpinneyError


class ExchangeError(SpinneyError):
    """The exchange did not do what was asked."""


class BadAddress(ExchangeError):
    """A name that cannot be part of an address."""


class TransientExchangeError(ExchangeError):
    """The store is away, busy or full; the same call may succeed later."""


class ExchangeDenied(ExchangeError):
    """The store refuses, and will do so until somebody mends rights, keys or settings."""


class Unreadable(ExchangeDenied, Refused):
    """Somebody left what others may not read; that is no reason to stop for everybody."""


class SecondCopy(ExchangeError, Refused):
    """Two different messages claim one address."""


class ObjectTooLarge(ExchangeError, Refused):
    """Somebody left more bytes than the reader allows."""
