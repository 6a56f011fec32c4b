# SPDX-License-Identifier: Apache-2.0
"""An attached VF is changed many times a second: the history reports some and counts the rest.

The writer counts its writes; the CPU time that vfmgrd uses for them is bounded.
"""

import re

from vflab.product import Product
from vflab.usage import VFMGR, CpuShare

COUNTED_SECONDS_MAX = 200
TOLD_MAX = 10  # changes in a minute that are reported one by one
CPU_SHARE_MAX = 0.25
STORM = """cd /run/storm; touch going
while [ -e going ]; do
  ip link set {pf} vf 0 trust off && ip link set {pf} vf 0 trust on && echo >>rounds || exit 1
done"""


def run(lab):
    lab.expect("rounds of the storm", "told", "counted", "calm again")
    product = Product(lab)
    product.manage(num_vfs=2)
    lab.vm("tenant", start=False)
    # A network keeps the PF up; the kernel reports no change of VFs for a PF that is down.
    attachment = product.attach("tenant", vf=0, network="train", settings={"trust": True})
    last = history(lab, product)[0]["number"]
    lab.host.run("mkdir /run/storm")
    storm = lab.host.background(STORM.format(pf=product.pf))
    share = CpuShare(lab, *VFMGR)
    counted = lab.host.wait_for("the history counts the storm",
                                lambda: find_counted(lab, product, last), COUNTED_SECONDS_MAX)
    found = share.so_far()
    lab.check(found <= CPU_SHARE_MAX, f"{found:.2f} of a CPU, at most {CPU_SHARE_MAX} was wanted")
    lab.host.run("rm /run/storm/going")
    lab.check_equal(storm.wait(60).status, 0, "the storm's end")
    rounds = int(lab.host.run("wc -l </run/storm/rounds; rm -r /run/storm").stdout)
    lab.count("rounds of the storm", rounds)
    judge(lab, product, last, counted, rounds)
    lab.host.wait_for("nothing drifts any more", product.calm, 90)
    lab.check(lab.observe.ip_link_vf(product.pf, 0)["trust"], "the storm's last word is trust on")
    lab.count("calm again")
    product.detach(attachment)
    product.leave()


def judge(lab, product, last, counted, rounds):
    """Returns the events before the first count, and whether that count can be true."""
    # The observation that reports the count may also report the first change of the next minute.
    told = [one for one in history(lab, product)
            if one["number"] > last and one["at"] < counted["at"]]
    more = int(re.search(r"changed (\d+) more times within a minute", counted["detail"])[1])
    lab.step(f"{2 * rounds} changes in all; told {len(told)}, then: {counted['detail']}")
    lab.check({one["kind"] for one in told} == {"drift", "settled"}, f"what was told: {told}")
    lab.check(len(told) == TOLD_MAX, f"{len(told)} were told one by one, {TOLD_MAX} are to be")
    lab.check(0 < more <= 2 * rounds - len(told), f"{more} more were counted")
    lab.count("told", len(told))
    lab.count("counted", more)


def history(lab, product):
    return lab.api("GET", f"/v1/pfs/{product.pci}/vfs/0/history").body["items"]


def find_counted(lab, product, last):
    for one in history(lab, product):
        if one["number"] > last and "more times within a minute" in one["detail"]:
            return one
    return None
