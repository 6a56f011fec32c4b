# SPDX-License-Identifier: Apache-2.0
"""vfctl beside the real vfmgrd on fakes. It sees no configuration of whoever runs the tests."""

import os
import subprocess

from live_daemon import BUILD

VFCTL = BUILD / "service/vfctl"


def environment(folder, **more):
    """An environment whose only configuration is that of the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VFMGR_")}
    return {**kept, "XDG_CONFIG_HOME": str(folder), "HOME": str(folder), **more}


def run(*words, env, status=0):
    done = subprocess.run([VFCTL, *words], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env=env)
    assert done.returncode == status, done
    return done


def vfctl(daemon, *words, status=0, **more):
    """Runs vfctl on the daemon's socket; `more` is added to its environment."""
    return run("--host", f"unix:{daemon.socket}", *words, status=status,
               env=environment(daemon.folder, **more))
