# SPDX-License-Identifier: Apache-2.0
"""All requests over vsock are answered, however fast they follow each other."""

from vflab.programs import built

NEEDS_PACKAGES = False


def run(lab):
    lab.expect("passed over vsock_loopback")
    program = built(lab, "http_test")
    lab.step("the host's kernel carries vsock to itself, and the tests of api/http use it")
    lab.host.copy_in(program, "/root/http_test")
    lab.host.run("modprobe vsock_loopback")
    said = lab.host.run("/root/http_test --gtest_filter='Vsock.*' --gtest_brief=1",
                        check=False, timeout=300)
    lab.check_equal(said.status, 0, f"http_test: {said.stdout[-2000:]}")
    lab.check("SKIPPED" not in said.stdout, f"not run: {said.stdout[-2000:]}")
    passed = [line for line in said.stdout.splitlines() if line.startswith("[  PASSED  ]")]
    lab.count("passed over vsock_loopback", int(passed[0].split()[3]) if passed else 0)
    lab.host.run("rm /root/http_test")
    # A vsock connection that the other side has not closed yet is kept for 8 s
    # (VSOCK_CLOSE_TIMEOUT).
    lab.host.wait_for("vsock_loopback is free", "rmmod vsock_loopback", 60)
