# SPDX-License-Identifier: Apache-2.0
"""doctor's findings about the emulated host that are new since the host was well."""

import json
import os
import re
from pathlib import Path

REMEDY_SECONDS = 600  # installing a package is slow on an emulated CPU


def keep_bundle(lab, name):
    """Saves what doctor reads of the host now, if VFMGR_LAB_BUNDLES names a folder for it.

    That is how the checks' recordings of the lab are made: each trouble's becomes a bundle of
    tests/fixtures/bundles/lab, which nothing makes anew by itself. The host that is well is kept
    whole, a trouble as what differs from it (RFC 7396).
    """
    folder = os.environ.get("VFMGR_LAB_BUNDLES")
    if not folder:
        return
    lab.vfctl("support-bundle", "/run/kept.json")
    Path(folder).mkdir(parents=True, exist_ok=True)
    file = Path(folder) / (re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") + ".json")
    lab.host.copy_out("/run/kept.json", file)
    lab.host.run("rm /run/kept.json")
    bundle = json.loads(file.read_text())
    bundle["provenance"] = "lab"
    bundle["source"] = f"the emulated host of tests/lab, collected by vfctl support-bundle: {name}"
    well = Path(folder) / "well.json"
    if file != well and well.exists():
        patch = merge_patch(json.loads(well.read_text()), bundle)
        bundle = {"based_on": "lab/well", "patch": patch}
    file.write_text(json.dumps(bundle, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def merge_patch(old, new):
    """Returns what makes `new` of `old`, by RFC 7396."""
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key in old and isinstance(old[key], dict) and isinstance(value, dict):
            if old[key] != value:
                patch[key] = merge_patch(old[key], value)
        elif key not in old or old[key] != value:
            patch[key] = value
    return patch


class Doctor:
    def __init__(self, lab, after_boot):
        """`after_boot`: a command that restores the host's state if a boot doesn't."""
        self.lab = lab
        self.after_boot = after_boot
        self.well = self.bad()
        keep_bundle(lab, "well")

    def report(self, *options):
        return self.lab.vfctl("doctor", *options, "-o", "json", check=False).json()

    def bad(self):
        """Returns what fails and what warns, in the order printed; failures come first."""
        found = [one for one in self.report()["findings"] if one["remedy"]]
        return sorted(found, key=lambda one: one["result"])

    def new(self):
        known = {(one["rule"], one["subject"]) for one in self.well}
        return [one for one in self.bad() if (one["rule"], one["subject"]) not in known]

    def first(self, name, rule):
        """Returns the first finding, which must be of that rule."""
        found = self.new()
        rules = [one["rule"] for one in found]
        self.lab.check(rules[:1] == [rule], f"{name}: {rule} should be first of {rules}")
        keep_bundle(self.lab, name)
        return found[0] if rules[:1] == [rule] else None

    def remedy(self, name, finding):
        """Runs the remedy as printed; afterwards everything that was well before must be well."""
        commands = finding["remedy"]["commands"]
        self.lab.step(f"{finding['detail']}: {'; '.join(commands)}")
        self.lab.check(commands, f"{name}: no command remedies it")
        for command in commands:
            if command == "reboot":
                self.reboot()
            else:
                self.lab.host.run(command, timeout=REMEDY_SECONDS)
        self.lab.check_equal([one["rule"] for one in self.new()], [], f"{name}: after the remedy")
        self.lab.count("remedied")

    def reboot(self):
        self.lab.reboot()
        self.lab.host.wait_for("vfmgrd serves", "systemctl is-active vfmgrd", 120)
        self.lab.host.run(self.after_boot)
