"""Inside a new network namespace: switch loopback on, then become the command given as arguments.

Jupyter talks to its kernels over 127.0.0.1, and in a new namespace even that is off. `ip link set lo up` does
the same, but is not installed everywhere.
"""

import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def switch_on_loopback():
    """Set the flag that `ip link set lo up` sets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(handle, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


if __name__ == "__main__":
    switch_on_loopback()
    os.execvp(sys.argv[1], sys.argv[1:])
