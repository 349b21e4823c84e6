"""Refuse every way out of this machine; Python imports this at start-up from a folder on PYTHONPATH.

For machines that do not allow network namespaces. Kernels are processes of their own, so that a guard in the
test runner alone would see nothing of what notebooks do.
"""

import socket

MESSAGE = "the notebooks of the course are tested offline"
_connect, _connect_ex, _sendto = socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto
_getaddrinfo = socket.getaddrinfo


def _check(host):
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", "::1", "0.0.0.0", "::") or str(name).startswith("127."):
        return
    raise OSError(f"{MESSAGE}, got a way to {name!r}")


def _check_address(family, address):
    if family in (socket.AF_INET, socket.AF_INET6):
        _check(address[0])


class GuardedSocket(socket.socket):
    """A socket that reaches this machine only."""

    def connect(self, address):
        _check_address(self.family, address)
        return _connect(self, address)

    def connect_ex(self, address):
        _check_address(self.family, address)
        return _connect_ex(self, address)

    def sendto(self, data, *rest):
        _check_address(self.family, rest[-1])
        return _sendto(self, data, *rest)


def guarded_getaddrinfo(host, *rest, **options):
    """Look up names of this machine only."""
    _check(host)
    return _getaddrinfo(host, *rest, **options)


socket.socket = GuardedSocket
socket.getaddrinfo = guarded_getaddrinfo
