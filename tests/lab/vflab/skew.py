# SPDX-License-Identifier: Apache-2.0
"""vfctl of one version and a vfmgrd of another: what people type, to read and to change."""

READS = ["version", "pf list", "pf show {pf}", "vf list", "vf list {pf}", "vf show {pf}/0",
         "vf history {pf}/0", "vf verifications {pf}/0", "vm list", "network list",
         "network show train", "pool list", "reservation list", "identities show",
         "attachment list", "attachment show {attached}", "attachment verifications {attached}",
         "op list", "tenant list", "token list", "audit --limit 5", "export", "firmware list",
         "rdma list", "rdma link list", "top --count 1", "context list", "query GET /v1/pfs",
         "support-bundle /run/skew.tar"]
IN_JSON = ["pf list", "pf show {pf}", "vf list", "vf show {pf}/0", "vm list", "network list",
           "attachment list", "attachment show {attached}", "op list", "token list", "audit",
           "export", "rdma list", "tenant list", "pool list"]
WRITES = ["pf set {pf} --label skew=yes", "pf set {pf} --label skew=no --dry-run",
          "network set skew --prefix 192.168.77.0/24 --mtu 1500",
          "network show skew -o yaml >/run/skew.yaml", "network set skew -f /run/skew.yaml",
          "pool set skew --pf {pf} --network skew", "pool remove skew",
          "network remove skew", "token create --role viewer --name skew -o json >/run/skew.json",
          "token revoke $(vfctl token list -o csv -c ID,DESCRIPTION --no-headers | "
          "grep skew | cut -d, -f1)",
          "export >/run/skew.yaml", "diff -f /run/skew.yaml", "apply -f /run/skew.yaml",
          "attach {free} --pf {pf} --network train --dry-run",
          "attach {free} --pf {pf} --network train --verify --verify-profile quick",
          "attachment set {free} --max-tx-rate 500", "verify {free} --profile quick",
          "detach {free}"]
# doctor: what was found; drained: a VM has a VF.
ENDS = {"doctor": (0, 1, 2), "drained": (4,)}
COMMAND_SECONDS = 300


class Pair:
    """Both programs of a pair, and what of it failed."""

    def __init__(self, lab, program, its_version, peer, peers_version):
        self.lab = lab
        self.name = f"{program} {its_version} with {peer} {peers_version}"
        self.tried, self.failures = 0, []

    def judge(self, condition, text):
        self.tried += 1
        if not self.lab.check(condition, f"{self.name}: {text}"):
            self.failures.append(text)

    def close(self):
        verdict = f"{len(self.failures)} fail" if self.failures else "pass"
        self.lab.step(f"skew: {self.name}: {self.tried} tried: {verdict}")
        self.lab.count("skew pairs", not self.failures and self.tried > 0)
        return self


def vfctl_commands(pair, vfctl, **names):
    """Types each command; `vfctl` is the folder that its program is in."""
    for command in [*READS, *ENDS, *WRITES]:
        typed(pair, vfctl, command.format(**names), ENDS.get(command, (0,)))
    for command in IN_JSON:
        shown = typed(pair, vfctl, command.format(**names) + " -o json", (0,))
        try:
            pair.judge(shown.json() is not None, f"vfctl {command} -o json: {shown}")
        except ValueError:
            pair.judge(False, f"vfctl {command}: no JSON: {shown}")


def typed(pair, vfctl, command, ends):
    done = pair.lab.host.run(f"PATH={vfctl}:$PATH; cd /run; vfctl {command}", check=False,
                             timeout=COMMAND_SECONDS)
    pair.judge(done.status in ends, f"vfctl {command}: {done}")
    return done
