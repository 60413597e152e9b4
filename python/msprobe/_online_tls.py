"""TLS of an online check, both sides with certificates of one authority of their own, and tokens."""

import hmac
import os
import ssl
import stat
from typing import Optional

_SMALLEST_TOKEN, _LARGEST_TOKEN = 16, 1024


class SetupError(Exception):
    """Something that is missing before a connection can be made; the text says what."""


def context_of(folder: str, side: str) -> Optional[ssl.SSLContext]:
    """Returns the context of a side, None for connections without TLS.

    Each side knows the other by a certificate of the authority in ca.crt, whatever the name in it: such certificates are made for a
    pair of machines, whose addresses they do not have.

    Args:
        folder: Has {side}.key, {side}.crt, ca.crt and, where certificates were revoked, crl.pem; "" for none.
        side: "server" or "client".

    Raises:
        SetupError: A file is missing or damaged.
    """
    if not folder:
        return None
    key, certificate, authority, revoked = (
        os.path.join(folder, name) for name in (f"{side}.key", f"{side}.crt", "ca.crt", "crl.pem")
    )
    for path in (key, certificate, authority):
        if not os.path.isfile(path):
            raise SetupError(f"tls_path: {path} does not exist")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    password = os.environ.get("MSPROBE_TLS_PASSWORD", "")
    try:
        context.load_cert_chain(certificate, key, password=lambda: password)
        context.load_verify_locations(authority)
        if os.path.isfile(revoked):
            context.load_verify_locations(revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    except (ssl.SSLError, OSError) as error:
        raise SetupError(
            f"tls_path: {folder} cannot be used ({error}); MSPROBE_TLS_PASSWORD is that of the key"
        ) from error
    return context


def read_token(path: str) -> str:
    """Returns the token of a file, "" for no path.

    Args:
        path: A file that nobody else may read.

    Raises:
        SetupError: It cannot be read, or others can read it.
    """
    if not path:
        return ""
    try:
        with open(path, encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.read(_LARGEST_TOKEN + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"token_path: {path} cannot be read ({error})") from error
    if stat.S_IMODE(mode) & 0o077:
        raise SetupError(f"token_path: others may read {path}: chmod 600 it")
    if not _SMALLEST_TOKEN <= len(token) <= _LARGEST_TOKEN:
        raise SetupError(f"token_path: {path} has to hold {_SMALLEST_TOKEN} to {_LARGEST_TOKEN} characters")
    return token


def same_token(given: object, token: str) -> bool:
    """Compares in a time that does not depend on where they differ.

    Args:
        given: What somebody said.
        token: The one that is right.
    """
    return isinstance(given, str) and hmac.compare_digest(given.encode(), token.encode())


def is_here(host: str) -> bool:
    """Whether an address is one of this machine alone.

    Args:
        host: An address or a name.
    """
    return host in ("localhost", "::1") or host.startswith("127.")
