# SPDX-License-Identifier: Apache-2.0
"""Programs for the emulated host: a front that somebody has captured, and forbidden acts.

FRONT runs as user vfmgrd, whose own vfmgrd goes on, and sends the broker what it is told. ACTS runs
in place of a unit's program, with everything that systemd takes from that unit.
"""

import json

FRONT_FILE, ACTS_FILE = "/run/captured-front.py", "/run/forbidden-acts.py"
SOCKET = "/run/vfmgr-broker.sock"

# Reads one JSON list of requests; prints one answer for each, or how the broker ended it.
FRONT = f"""
import json, socket, sys
def lines(stream):
    return iter(stream.readline, "")
def ask(request):
    front = socket.socket(socket.AF_UNIX)
    front.settimeout(120)
    front.connect("{SOCKET}")
    stream = front.makefile("rw", encoding="utf-8", newline="\\n")
    greeting = json.loads(stream.readline())
    try:
        stream.write(request + "\\n")
        stream.flush()
        for line in lines(stream):
            answer = json.loads(line)
            if answer["id"] != 0:
                return answer
    except ConnectionError as ended:
        return {{"ended": str(ended)}}
    return {{"ended": "the broker closed the connection"}}
for request in json.load(sys.stdin):
    print(json.dumps(ask(request)), flush=True)
"""

# Many requests at once over one connection; prints how many were refused for their number.
FLOOD = f"""
import json, socket, sys
front = socket.socket(socket.AF_UNIX)
front.settimeout(120)
front.connect("{SOCKET}")
stream = front.makefile("rw", encoding="utf-8", newline="\\n")
stream.readline()
number = int(sys.argv[1])
for each in range(number):
    stream.write(json.dumps({{"id": each + 1, "call": "observe"}}) + "\\n")
stream.flush()
answered = limited = 0
while answered < number:
    answer = json.loads(stream.readline())
    if answer["id"] == 0:
        continue
    answered += 1
    limited += answer.get("error", {{}}).get("code") == "limit_exceeded"
print(limited)
"""

# Opens connections and keeps them; prints how many were greeted.
CROWD = f"""
import socket, sys
fronts, greeted = [], 0
for each in range(int(sys.argv[1])):
    front = socket.socket(socket.AF_UNIX)
    front.settimeout(30)
    front.connect("{SOCKET}")
    fronts.append(front)
for front in fronts:
    try:
        greeted += bool(front.recv(1))
    except OSError:
        pass
print(greeted)
"""

# Each act prints its name and what came of it: "done", or the error's name.
ACTS = """
import ctypes, errno, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def called(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
def wrote(path, text="x"):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
def created(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    os.unlink(path)
def connected(path):
    socket.socket(socket.AF_UNIX).connect(path)
def link_down():
    # RTM_NEWLINK of the PF with IFF_UP in its change mask.
    index = socket.if_nametoindex(sys.argv[2])
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    body = struct.pack("=BxHiII", 0, 0, index, 0, 1)
    netlink.send(struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body)
    error = struct.unpack_from("=i", netlink.recv(65536), 16)[0]
    if error:
        raise OSError(-error, "")
def suid():
    path = sys.argv[3] + "/suid"
    created(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    try:
        os.chmod(path, 0o4755)
    finally:
        os.unlink(path)
ANYBODY = {
    "write to /etc": lambda: created("/etc/vfmgr-was-here"),
    "write to /usr": lambda: created("/usr/vfmgr-was-here"),
    "read a file of root's": lambda: open("/root/.ssh/authorized_keys").read(),
    "load a module": lambda: called(libc.syscall(175, b"x", 1, b"")),
    "mount": lambda: called(libc.mount(b"tmpfs", b"/mnt", b"tmpfs", 0, None)),
    "make a namespace": lambda: called(libc.unshare(0x10000000)),
    "set the clock": lambda: called(libc.settimeofday(struct.pack("qq", 1, 0), None)),
    "set the host's name": lambda: socket.sethostname("captured"),
    "reboot": lambda: called(libc.syscall(169, 0, 0, 0, 0)),
    "open a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0),
    "make a file that is set-user-ID": suid,
    "change a control group": lambda: wrote("/sys/fs/cgroup/cgroup.subtree_control", "+cpu"),
    "write to the kernel's log": lambda: wrote("/dev/kmsg"),
    "write and execute memory": lambda: called(
        libc.syscall(9, 0, 4096, 7, 0x22, -1, 0)),
}
FRONT = {
    "read the broker's records": lambda: os.listdir("/var/lib/vfmgr-broker"),
    "read /etc/shadow": lambda: open("/etc/shadow").read(),
    "make VFs": lambda: wrote("/sys/class/net/" + sys.argv[2] + "/device/sriov_numvfs", "0"),
    "open VFIO": lambda: os.open("/dev/vfio/vfio", os.O_RDWR),
    "ask libvirt": lambda: connected("/run/libvirt/libvirt-sock"),
    "set a link": link_down,
    "become root": lambda: os.setuid(0),
    "kill the broker": lambda: os.kill(int(sys.argv[4]), 9),
}
acts = {**ANYBODY, **(FRONT if sys.argv[1] == "front" else {})}
for name, act in acts.items():
    try:
        act()
        print(name + ": done", flush=True)
    except OSError as error:
        print(name + ": " + errno.errorcode.get(error.errno, str(error)), flush=True)
"""


def attach(number, vm, vf, pf, pci, **more):
    return perform(number, "attach_hostdev", vm_uuid=vm, attachment="0badbad0",
                   vf={"pf": pf, "index": vf}, pci=pci, live=True, config=True, vm="vm", **more)


def perform(number, step, **members):
    return json.dumps({"id": number, "call": "perform", "milliseconds": 60000,
                       "step": {"step": step, **members}})
