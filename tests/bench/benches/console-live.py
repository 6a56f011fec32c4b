# SPDX-License-Identifier: Apache-2.0
"""The console in Chromium on a host with 960 VFs and 120 VMs, beside an empty page.

Chromium's trace has the tasks of a page's main thread: script, style, layout, painting, garbage.
All of them count, by the CPU time of their thread, so that another load of the machine is left out
as far as it can be. The empty page is measured in the same rounds, and nothing of it is subtracted.

"picture": all tasks from the reload of a signed-in tab until the host's picture is complete, and a
second longer. "event": all tasks from before another program changes a VF until its cell has
changed, and a second longer, so that what is drawn a few times a second only is among them.
"attach" is the same for an attachment, to the end of its operation: that is half a dozen events,
and is printed only.

"host-longest", "events-longest": the longest task of any of 8 tabs, all of which show that page,
while 500 events a second come from the daemon: other programs change VFs. The empty page is traced
at the same time. Afterwards each tab must be live, have been so all the time, and show the effect
of one more event.
"""

import json
import os
import subprocess

from figures import Figures
from vflab import browser
from vflab.paths import REPO
from vflab.programs import BUILD, built_here
from vflab.shell import call

NEEDS_LAB = False
ROUNDS = 5
SECONDS = 50  # in which many events come, in total
PICTURE_MS_MAX = 400
EVENT_MS_MAX = 50
TASK_MS_MAX = 100
FIGURES = {"picture": ("#/", PICTURE_MS_MAX), "event": ("#/", EVENT_MS_MAX),
           "attach": ("#/", None), "host-longest": ("#/", TASK_MS_MAX),
           "events-longest": ("#/events", TASK_MS_MAX)}
EMPTY = "data:text/html,<title>empty</title>"
WEB = REPO / "service/web"


def build():
    """The daemon with the packages' flags, the console, and what drives Chromium."""
    built_here("vfmgrd_on_fakes")
    browser.install()
    call(["cmake", "-P", str(WEB / "bundle.cmake")])


def lines(*command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "VFMGR_BUILD_DIR": str(BUILD)}) as process:
        for line in process.stdout:
            assert line.startswith("{"), line
            yield json.loads(line)
    assert process.returncode == 0, f"{command} ended with {process.returncode}: see above"


def run(lab, seconds=SECONDS):
    lab.expect("rounds", "events", "live")
    build()
    program = ["node", str(WEB / "build.mjs"), "--bench", "console_live"]
    figures = {name: Figures(lab, f"console-{name}", "ms", f"chromium https://127.0.0.1:PORT/{at}",
                             f"chromium '{EMPTY}'", ours_max=limit)
               for name, (at, limit) in FIGURES.items()}
    for said in lines(*program, str(ROUNDS), str(seconds / ROUNDS / 2)):
        if "figure" in said:
            figures[said["figure"]].round(said["ours"], said["peer"])
        elif "step" in said:
            lab.step(said["step"])
        elif "count" in said:
            lab.count(said["count"], said["n"])
        else:
            lab.check(False, said["failed"])
    for one in figures.values():
        one.report()
