"""Tokens with which an operator calls servers: environment, keyring, or a file that only its owner can read."""

from __future__ import annotations

import configparser
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from omnigraph.cli.scope.config import home
from omnigraph.errors import ConfigInvalid

FILE: Final = "credentials"
FALLBACK: Final = "OMNIGRAPH_BEARER_TOKEN"
_SERVICE: Final = "omnigraph"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def token_of(server: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The token for a server of the configuration, or for one that it does not name; None if there is none."""
    if server is not None:
        own = environment.get(variable_of(server)) or _stored(server, environment)
        if own:
            return own
    return environment.get(FALLBACK) or None


def variable_of(server: str) -> str:
    """The environment variable that can hold the token of a server."""
    return "OMNIGRAPH_TOKEN_" + re.sub(r"[^A-Z0-9]", "_", server.upper())


def store_token(server: str, token: str, environment: Mapping[str, str] = os.environ) -> str:
    """Keep a token: in the keyring if there is one that works, else in the file. Says where."""
    _check(server, token)
    found = _read(environment)
    in_keyring = _put_in_keyring(server, token)
    found[server] = {"keyring": "yes"} if in_keyring else {"token": token}
    _write(found, environment)
    return "keyring" if in_keyring else str(home(environment) / FILE)


def forget_token(server: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Remove the token of a server; False if there was none."""
    found = _read(environment)
    if server not in found:
        return False
    if found[server].get("keyring"):
        _remove_from_keyring(server)
    found.remove_section(server)
    _write(found, environment)
    return True


def _stored(server: str, environment: Mapping[str, str]) -> str | None:
    found = _read(environment)
    if server not in found:
        return None
    if found[server].get("keyring"):
        import keyring

        return keyring.get_password(_SERVICE, server)
    return found[server].get("token")


def _check(server: str, token: str) -> None:
    if _NAME.fullmatch(server) is None:
        raise ConfigInvalid(server[:80], "a server's name has letters, digits, '.', '_' and '-'")
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise ConfigInvalid(server, "a token is one line of printable ASCII characters")


def _read(environment: Mapping[str, str]) -> configparser.ConfigParser:
    """The credentials file; ConfigInvalid if others than its owner can read it."""
    path = home(environment) / FILE
    found = configparser.ConfigParser(interpolation=None, default_section="\0")
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & _OTHERS:
                shown = stat.filemode(mode)
                raise ConfigInvalid(str(path), f"others can read it ({shown}); run `chmod 600 {path}`")
            found.read_file(file)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        reason = str(error).splitlines()[0] if isinstance(error, OSError) else "it is not a credentials file"
        raise ConfigInvalid(str(path), reason) from None
    return found


def _write(found: configparser.ConfigParser, environment: Mapping[str, str]) -> None:
    """Replace the file as a whole; it is never there with wider permissions."""
    folder = home(environment)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f"{FILE}.{os.getpid()}"
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            found.write(file)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(folder / FILE)
    except OSError as error:
        Path(draft).unlink(missing_ok=True)
        raise ConfigInvalid(str(folder / FILE), f"it cannot be written: {error}") from None


def _put_in_keyring(server: str, token: str) -> bool:
    """Keep a token in the keyring; False if there is none, or none that works."""
    try:
        import keyring
        from keyring.backends.fail import Keyring
        from keyring.errors import KeyringError
    except ModuleNotFoundError:
        return False
    if isinstance(keyring.get_keyring(), Keyring):
        return False
    try:
        keyring.set_password(_SERVICE, server, token)
    except KeyringError:
        return False
    return True


def _remove_from_keyring(server: str) -> None:
    import keyring
    from keyring.errors import PasswordDeleteError

    try:
        keyring.delete_password(_SERVICE, server)
    except PasswordDeleteError:
        return
