# SPDX-License-Identifier: Apache-2.0
"""Two hosts whose administrator is one: networks, identities, and ways from each to the other."""

from vflab.product import TRAIN, Product
from vflab.second_host import MANAGEMENT

HOST_ADDRESSES = ("192.168.100.3", "192.168.100.4")
# What each host may hand out: first and last MAC, first and last address.
PARTS = [("52:54:00:0a:00:00", "52:54:00:0a:00:ff", "192.168.100.10", "192.168.100.49"),
         ("52:54:00:0b:00:00", "52:54:00:0b:00:ff", "192.168.100.50", "192.168.100.99")]
CONTEXTS = ("host-a", "host-b")  # as the other host names it

KEY = ("[ -e ~/.ssh/id_ed25519 ] || ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519; "
       "cat ~/.ssh/id_ed25519.pub")
API = '[listen.tls]\nenabled = true\naddress = "{}"\n'
FINGERPRINT = ("openssl x509 -in /var/lib/vfmgr/tls.crt -noout -fingerprint -sha256 | "
               "cut -d= -f2 | tr -d : | tr A-F a-f")
TOKEN_FILE = "/root/{}.token"
CONTEXT = """[contexts.{name}]
address = "https://{address}:8470"
fingerprint = "{fingerprint}"
token_file = "{token_file}"
"""


def prepared(labs, num_vfs):
    """Returns both hosts' Products: each has its part of one network's addresses, and of MACs."""
    products = [Product(lab) for lab in labs]
    for product, part, address in zip(products, PARTS, HOST_ADDRESSES):
        product.manage(num_vfs=num_vfs, networks=[{**TRAIN, "host_address": address}])
        product.must("PUT", "/v1/identities", {
            "macs": [f"{part[0]}-{part[1]}"],
            "addresses": [{"network": "train", "ranges": [f"{part[2]}-{part[3]}"]}]})
    return products


def leave(products):
    for product in products:
        product.leave()
        product.must("PUT", "/v1/identities", {})


def introduce(labs):
    """Lets root on each host reach the other by ssh, and its vfmgrd by a context."""
    for lab, address in zip(labs, MANAGEMENT):
        lab.host.write("/etc/vfmgr/conf.d/management.toml", API.format(address))
        lab.host.run("systemctl restart vfmgrd")
    for here, there, name, address in ((0, 1, CONTEXTS[1], MANAGEMENT[1]),
                                       (1, 0, CONTEXTS[0], MANAGEMENT[0])):
        admin, other = labs[here], labs[there]
        other.host.run("cat >>/root/.ssh/authorized_keys", input=admin.host.run(KEY).stdout)
        key = other.host.read("/etc/ssh/ssh_host_ed25519_key.pub")
        admin.host.run("cat >>/root/.ssh/known_hosts", input=f"{address} {key}")
        token = other.vfctl("-o", "json", "token", "create", "--name", "migration", "--role",
                            "operator").json()["token"]
        admin.host.write(TOKEN_FILE.format(name), token + "\n", "0600")
        admin.host.write("/etc/vfmgr/contexts.toml", CONTEXT.format(
            name=name, address=address, token_file=TOKEN_FILE.format(name),
            fingerprint=other.host.run(FINGERPRINT).stdout.strip()))
