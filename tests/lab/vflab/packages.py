# SPDX-License-Identifier: Apache-2.0
"""vfmgr's packages, built from the current working tree."""

import os
import shutil
import subprocess
import sys
import time

from vflab import apt
from vflab.paths import LAB, REPO, LabError, machine_suite, names_in
from vflab.parts import hash_of, part

SOURCES = ["api", "vfmgr", "guest-tools", "service", "deploy", "CMakeLists.txt",
           "CMakePresets.json", "LICENSE"]
PACKAGES = ["vfmgr", "vfmgr-cli", "vfmgr-cockpit", "vfmgr-fleet", "vfmgr-guest", "vfmgr-web"]
PROGRESS_SECONDS = 15
LINES_SHOWN = 80
DEPENDENCIES = REPO / "deploy/build-packages.txt"
CONSOLE_DEPENDENCIES = REPO / "deploy/console-build.txt"
TEST_DEPENDENCIES = REPO / "deploy/test-packages.txt"
CONSOLE = "build/web"


def source_files():
    """Returns the files that the packages are built from: tracked and new, not ignored ones."""
    shown = subprocess.run(["git", "-C", str(REPO), "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard", "--", *SOURCES],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if shown.returncode == 0:
        names = sorted(set(shown.stdout.decode().split("\0")) - {""})
        return [name for name in names if os.path.lexists(REPO / name)]
    found = []  # not a checkout: a release tarball holds only these files
    for source in SOURCES:
        path = REPO / source
        files = path.rglob("*") if path.is_dir() else [path]
        found += [str(file.relative_to(REPO)) for file in files if file.is_file()]
    return sorted(found)


def source_key(suite):
    names = source_files()
    return hash_of("1", suite, names, *[REPO / name for name in names], LAB / "build-packages")


def built(suite):
    """Returns the folder with the .deb files for a release, and the key of its content."""
    key = source_key(suite)

    def build(folder):
        done = subprocess.run([str(LAB / "build-packages"), suite, str(folder)])
        if done.returncode != 0:
            raise LabError("our packages did not build (see above); for work on the lab itself "
                           "there is --without-packages")
    return part(f"debs-{suite}", key, build), key


def packages_of(commit, suite):
    """Returns the folder with the .deb files of an older commit, built once for a release."""
    known = subprocess.run(["git", "-C", str(REPO), "rev-parse", "-q", "--verify",
                            f"{commit}^{{commit}}"], stdout=subprocess.PIPE, text=True)
    if known.returncode != 0:
        raise LabError(f"no commit {commit} here, which older packages are built from: "
                       "git fetch --unshallow")
    name = known.stdout.strip()[:12]

    def build(folder):
        if suite == machine_suite():
            apt.install_here([*build_dependencies(), *console_dependencies()])
            source = REPO / f"build/commit-{name}"
            unpack(name, source)
            build_in(source, folder, lambda command: run_here(command, source))
            shutil.rmtree(source)
        else:
            build_elsewhere(suite, folder, lambda where: unpack(name, where), f"commit-{name}")
    return part(f"debs-{name}-{suite}", hash_of("1", build_dependencies()), build)


def unpack(commit, target):
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", str(REPO), "archive", commit],
                               stdout=subprocess.PIPE)
    unpacked = subprocess.run(["tar", "-C", str(target), "-xf", "-"], stdin=archive.stdout)
    archive.stdout.close()
    if archive.wait() or unpacked.returncode:
        raise LabError(f"the files of commit {commit} could not be unpacked")


def build_dependencies():
    return names_in(DEPENDENCIES)


def console_dependencies():
    """Returns Debian's Node.js, unless PATH has one."""
    here = shutil.which("node") and shutil.which("npm")
    return [] if here else names_in(CONSOLE_DEPENDENCIES)


def test_dependencies():
    return names_in(TEST_DEPENDENCIES)


def build_packages(suite, output):
    """Implements `build-packages SUITE OUTDIR`."""
    if suite == machine_suite():
        apt.install_here([*build_dependencies(), *console_dependencies()])
        build_in(REPO, output, lambda command: run_here(command, REPO))
    else:
        build_elsewhere(suite, output, bring_sources_and_console)
    names = sorted(path.name.split("_")[0] for path in output.glob("*.deb"))
    if names != PACKAGES:
        raise LabError(f"cpack made {names}, not {PACKAGES}")


def build_in(source, output, run):
    configuration = f"{source}/build/release/CPackConfig.cmake"
    run(["cmake", "--preset", "release"])
    run(["cmake", "--build", "--preset", "release"])
    run(["cpack", "--config", configuration, "-G", "DEB", "-B", str(output)])
    shutil.rmtree(output / "_CPack_Packages", ignore_errors=True)


def run_here(command, folder):
    """Shows a line of the compiler's output now and then, and its errors when it fails."""
    lines, told = [], time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in process.stdout:
        lines.append(line)
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"    {line.strip()[:96]}", flush=True)
    if process.wait() != 0:
        sys.stdout.write("".join(lines[-LINES_SHOWN:]))
        raise LabError(f"{' '.join(map(str, command[:3]))} ended with {process.returncode}")


def build_elsewhere(suite, output, bring, name="src"):
    """Builds in a tree of the other release, where object files of the folder "src" stay for the
    next build. `bring` fills the folder of that name with sources.
    """
    dependencies = build_dependencies()

    def build(folder):
        apt.make_tree(folder, suite, ["ca-certificates", *dependencies])
    root = part(f"build-{suite}", hash_of("1", suite, dependencies), build)
    source = root / name
    source.mkdir(exist_ok=True)
    bring(source)
    (root / "out").mkdir(exist_ok=True)
    script = f"""set -e
        cd /{name} && rm -rf /out/*
        cmake --preset release -DVFMGR_PORTABLE=OFF && cmake --build --preset release
        cpack --config build/release/CPackConfig.cmake -G DEB -B /out"""
    run_here(apt.in_tree_command(root, ["sh", "-c", script]), REPO)
    for deb in (root / "out").glob("*.deb"):
        shutil.copy(deb, output)
    if name != "src":
        shutil.rmtree(source)


def bring_sources_and_console(target):
    """The tree has no Node.js: it gets the console as this machine builds it."""
    apt.install_here(["cmake", *console_dependencies()])
    run_here(["cmake", "-P", str(REPO / "service/web/bundle.cmake")], REPO)
    bring_sources(target)
    console = target / CONSOLE
    shutil.rmtree(console, ignore_errors=True)
    console.mkdir(parents=True)
    for part_of in ("bundle", "cockpit", "licences"):
        shutil.copytree(REPO / CONSOLE / part_of, console / part_of)
    shutil.copy(REPO / CONSOLE / "bundle.key", console)


def bring_sources(target):
    """Copies the sources to the target with their times, so that only changes are compiled."""
    names = set(source_files())
    for path in sorted(target.rglob("*")):
        name = str(path.relative_to(target))
        if path.is_file() and not name.startswith("build/") and name not in names:
            path.unlink()
    listing = "".join(f"{name}\0" for name in sorted(names))
    archive = subprocess.Popen(["tar", "-C", str(REPO), "--null", "-T", "-", "-cf", "-"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen(["tar", "-C", str(target), "-xf", "-"], stdin=archive.stdout)
    archive.stdout.close()
    archive.stdin.write(listing.encode())
    archive.stdin.close()
    if archive.wait() or unpack.wait():
        raise LabError("could not copy the sources into the build root")
