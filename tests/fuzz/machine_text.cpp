// SPDX-License-Identifier: Apache-2.0
// Any text as a machine's own description: the first byte selects the file, link or command that it
// comes from. Every rule handles it, and each failure has a remedy.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/rules.hpp"

namespace {

using namespace vfmgr;

constexpr std::array<char const*, 12> files{"/proc/cmdline",
                                            "/proc/cpuinfo",
                                            "/proc/modules",
                                            "/dev/kmsg",
                                            "/sys/bus/pci/devices/0000:01:00.0/current_link_speed",
                                            "/sys/bus/pci/devices/0000:01:00.0/class",
                                            "/sys/bus/pci/devices/0000:01:00.0/config",
                                            "/sys/class/net/ens1/address",
                                            "/sys/class/infiniband/mlx5_0/node_guid",
                                            "/sys/class/infiniband/mlx5_0/ports/1/state",
                                            "/sys/class/infiniband/mlx5_0/ports/1/gids/0",
                                            "/boot/config-6.1.0"};
constexpr std::array<char const*, 3> links{"/sys/bus/pci/devices/0000:01:00.0",
                                           "/sys/bus/pci/devices/0000:01:00.0/virtfn0",
                                           "/proc/7/fd/3"};
constexpr std::array<char const*, 2> commands{"systemctl show a.service", "ofed_info -s"};

checks::Facts a_machine() {
    checks::Facts facts;
    facts.patterns = {"*"};
    facts.folders = {{"/sys/bus/pci/devices", {{"0000:01:00.0"}, 0}},
                     {"/sys/class/net", {{"ens1"}, 0}},
                     {"/sys/class/infiniband", {{"mlx5_0"}, 0}}};
    facts.files = {{"/proc/sys/kernel/osrelease", {"6.1.0\n", 0}},
                   {"/sys/bus/pci/devices/0000:01:00.0/class", {"0x020000\n", 0}},
                   {"/sys/bus/pci/devices/0000:01:00.0/vendor", {"0x15b3\n", 0}}};
    return facts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    auto facts = a_machine();
    std::size_t which = data[0] % (files.size() + links.size() + commands.size());
    std::string const text(reinterpret_cast<char const*>(data) + 1, size - 1);
    if (which < files.size())
        facts.files[files.at(which)] = {text, 0};
    else if ((which -= files.size()) < links.size())
        facts.links[links.at(which)] = {text, 0};
    else
        facts.commands[commands.at(which - links.size())] = {text, {}, 0, 0};
    for (auto const& finding : checks::diagnose(facts, checks::all_rules()).findings) {
        bool const bad =
            finding.result == CheckResult::failed || finding.result == CheckResult::warning;
        if (finding.detail.empty() || bad != finding.remedy.has_value()) std::abort();
    }
    return 0;
}
