"""zeusd: a privileged daemon of the Zeus project that sets GPUs for others, over a Unix socket.

Its interface is documented at https://ml.energy/zeus/zeusd/api/.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from downclock.adapters.devices.device import DeviceError, Trouble

SOCKETS = ("/run/zeusd/zeusd.sock", "/var/run/zeusd.sock")
"""Where it listens unless ``ZEUSD_SOCK_PATH`` says otherwise."""

ANSWER_S = 2.0
"""It answers at once or not at all."""

TROUBLES: dict[int, Trouble] = {400: "unsupported", 401: "permission", 403: "permission"}


def post(socket_path: str, route: str, gpu: int, doing: str, given: Mapping[str, int]) -> None:
    """Have one GPU set by the daemon behind a socket, and wait until it is."""
    import json
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlencode

    query = urlencode({"gpu_ids": gpu, "block": "true", **given})
    connection = HTTPConnection("localhost", timeout=ANSWER_S)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.sock.settimeout(ANSWER_S)
        connection.sock.connect(socket_path)
        connection.request("POST", f"/gpu/{route}?{query}")
        answer = connection.getresponse()
        body = answer.read(10_000)
    except (OSError, HTTPException) as error:
        reason = f"failed: zeusd at {socket_path} does not answer ({error})"
        raise DeviceError(doing, "refused", reason) from None
    finally:
        connection.close()
    if answer.status != 200:
        said = json.dumps(body.decode("utf-8", "replace")[:200])
        trouble = TROUBLES.get(answer.status, "refused")
        raise DeviceError(doing, trouble, f"zeusd refused it ({answer.status}: {said})")


def running_zeusd() -> str | None:
    """Return the daemon's socket where it is, else None."""
    named = os.environ.get("ZEUSD_SOCK_PATH")
    return next((path for path in ((named,) if named else SOCKETS) if os.path.exists(path)), None)
