# SPDX-License-Identifier: Apache-2.0
"""Folders are in an order: no folder includes anything from its right."""

import re

from rules.tree import Rule

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
PROJECT = ("api", "vfmgr", "guest-tools", "service")

# For each folder, longest prefix first: the folders that it may include. A prefix that ends in .hpp
# is that one file: the engine knows the seams, not their implementations.
ALLOWED = {
    "api/types": ["api/types"],
    "api/os": ["api/types", "api/os"],
    "api/portable": [],
    "api/http": ["api"],
    # The table of the drivers' differences is a header of constants.
    "vfmgr/plan": ["api/types", "vfmgr/plan", "vfmgr/kernel/quirks.hpp"],
    "vfmgr/netlink": ["api/types", "api/os", "vfmgr/netlink", "vfmgr/kernel/quirks.hpp"],
    "vfmgr/machine": ["api/types", "api/os", "vfmgr/netlink", "vfmgr/machine"],
    # Where the GPUs of a host belong is a plan's decision, which doctor's host part shows.
    "vfmgr/checks/host": ["api/types", "vfmgr/netlink", "vfmgr/machine", "vfmgr/checks",
                          "vfmgr/plan/placement.hpp"],
    "vfmgr/checks": ["api/types", "vfmgr/netlink", "vfmgr/machine", "vfmgr/checks"],
    # What doctor knows of a machine has the readers of a card's firmware and of the PCI tree.
    "vfmgr/kernel": ["api/types", "api/os", "vfmgr/plan", "vfmgr/netlink", "vfmgr/kernel",
                     "vfmgr/machine/command.hpp", "vfmgr/machine/firmware.hpp",
                     "vfmgr/machine/nic.hpp", "vfmgr/machine/places.hpp"],
    "vfmgr/hypervisor": ["api/types", "api/os", "vfmgr/plan", "vfmgr/hypervisor",
                         "vfmgr/kernel/kernel.hpp"],
    "vfmgr/store": ["api/types", "api/os", "vfmgr/plan", "vfmgr/store"],
    "vfmgr/engine": ["api/types", "api/os", "vfmgr/plan", "vfmgr/store", "vfmgr/engine",
                     "vfmgr/kernel/kernel.hpp", "vfmgr/hypervisor/hypervisor.hpp"],
    "vfmgr/rdma": ["api/types", "api/os", "vfmgr/netlink", "vfmgr/rdma"],
    "vfmgr/proof": ["api", "vfmgr/netlink", "vfmgr/rdma", "vfmgr/proof"],
    # Siblings: neither knows the other.
    "guest-tools": ["api", "vfmgr/netlink", "vfmgr/machine", "vfmgr/checks", "vfmgr/rdma",
                    "vfmgr/proof", "guest-tools"],
    "service/cli": ["api", "vfmgr/machine", "vfmgr/checks", "vfmgr/store", "service/cli"],
    # What is known of etcd knows nothing of the fleet's records.
    "service/fleet/etcd": ["api/types", "api/os", "service/fleet/etcd"],
    "service": ["api", "vfmgr", "service"],
}


def includes(tree, name):
    for number, line in enumerate(tree.lines(name), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def within(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def arrow(tree):
    found = []
    for name in tree.cpp(PROJECT):
        folder = next((prefix for prefix in ALLOWED if within(name, prefix)), None)
        if folder is None:
            found.append(f"{name}:1: no rule says what this folder may include")
            continue
        for number, quote, path in includes(tree, name):
            ours = path.split("/")[0] in PROJECT
            if quote == '"' and not ours:
                found.append(f"{name}:{number}: \"{path}\" does not begin with a project folder")
            elif ours and not any(within(path, prefix) for prefix in ALLOWED[folder]):
                found.append(f"{name}:{number}: {folder} may not include {path}")
            elif ours and not (tree.root / path).exists():
                found.append(f"{name}:{number}: there is no {path}")
    return found


def products_without_tests(tree):
    return [f"{name}:{number}: product code includes {path}"
            for name in tree.cpp(PROJECT) for number, _, path in includes(tree, name)
            if path.startswith(("tests/", "gtest/", "gmock/", "rapidcheck"))]


BARE_BEAST = "tests/bench/programs/bare_server.cpp"  # what the product is measured beside


def beast(tree):
    users = sorted({name for name in tree.cpp() for _, _, path in includes(tree, name)
                    if path.startswith("boost/beast") and name != BARE_BEAST})
    found = [f"{name}:1: Boost.Beast belongs to the .cpp files of api/http" for name in users
             if not re.fullmatch(r"api/http/[a-z_]+\.cpp", name)]
    if len(users) > 4:  # server, client, parser, and gzip
        found.append(f"{users[-1]}:1: {len(users)} files include Boost.Beast, 4 may")
    return found


JSON_HEADERS = ("api/types/json.hpp", "api/types/json_text.hpp")  # .cpp files include them


def json_in_headers(tree):
    found = []
    for name in tree.cpp(PROJECT):
        for number, _, path in includes(tree, name):
            if not name.endswith(".hpp") or name in JSON_HEADERS:
                continue
            if path == "nlohmann/json.hpp" or path in JSON_HEADERS:
                found.append(f"{name}:{number}: headers include nlohmann/json_fwd.hpp only")
    return found


RULES = [
    Rule("arrow", arrow,
         good={"api/types/a.hpp": "", "vfmgr/plan/a.cpp": '#include "api/types/a.hpp"\n',
               "vfmgr/kernel/kernel.hpp": "", "vfmgr/kernel/linux_kernel.hpp": "",
               "vfmgr/store/store.hpp": "", "guest-tools/net/v.hpp": "",
               "vfmgr/engine/a.cpp": '#include "vfmgr/kernel/kernel.hpp"\n'},
         bad=[{"api/types/b.cpp": '#include "vfmgr/store/store.hpp"\n'},
              {"vfmgr/plan/b.cpp": '#include "vfmgr/kernel/kernel.hpp"\n'},
              {"vfmgr/engine/b.cpp": '#include "vfmgr/kernel/linux_kernel.hpp"\n'},
              {"guest-tools/main.cpp": '#include "vfmgr/store/store.hpp"\n'},
              {"vfmgr/kernel/b.cpp": '#include <guest-tools/net/v.hpp>\n'},
              {"vfmgr/plan/b.cpp": '#include "a.hpp"\n'},
              {"vfmgr/plan/b.cpp": '#include "api/types/gone.hpp"\n'},
              {"service/b.cpp": '#include "guest-tools/net/v.hpp"\n'},
              {"vfmgr/new/b.cpp": ""}]),
    Rule("products-without-tests", products_without_tests,
         good={"api/types/a.cpp": "#include <string>\n"},
         bad=[{"api/types/a.cpp": "#include <gtest/gtest.h>\n"},
              {"api/types/a.cpp": '#include "tests/fakes/fake_kernel.hpp"\n'}]),
    Rule("beast", beast,
         good={**{f"api/http/{name}.cpp": "#include <boost/beast/http.hpp>\n" for name in "abcd"},
               BARE_BEAST: "#include <boost/beast/http.hpp>\n"},
         bad=[{"api/http/e.cpp": "#include <boost/beast/http.hpp>\n"},
              {"api/http/a.cpp": "", "service/a.cpp": "#include <boost/beast.hpp>\n"}]),
    Rule("json-in-headers", json_in_headers,
         good={"api/types/json.hpp": "#include <nlohmann/json.hpp>\n",
               "api/types/json_text.hpp": '#include "api/types/json.hpp"\n',
               "api/types/a.hpp": "#include <nlohmann/json_fwd.hpp>\n"},
         bad=[{"api/types/a.hpp": "#include <nlohmann/json.hpp>\n"},
              {"vfmgr/plan/a.hpp": '#include "api/types/json.hpp"\n'}]),
]
