// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/causes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

// A rule, and the rules whose failures it explains; "port." means all rules of port. Earlier rows
// come first: a link that is gone explains why the firmware does not answer, which explains a port
// without link.
struct Explanation {
    std::string_view cause;
    std::array<std::string_view, 10> effects;
};
constexpr auto explanations = std::to_array<Explanation>({
    {"log.pcie",
     {"log.mlx5", "log.nic", "pci.link", "stack.driver", "port.", "sriov.", "log.crash"}},
    {"log.crash", {"log.mlx5", "log.nic", "stack.driver", "port.", "gpu."}},
    {"log.mlx5", {"log.nic", "stack.driver", "port.", "sriov.resources"}},
    {"log.nic", {"stack.driver", "port.", "sriov.resources"}},
    {"iommu.enabled", {"iommu.", "vfio.", "sriov.vf_driver"}},
    {"sriov.firmware", {"sriov.capable", "sriov.resources"}},
    {"stack.secure_boot", {"stack.driver", "stack.core", "gpu.driver", "gpu.peermem"}},
    {"stack.dkms", {"stack.driver", "stack.symbols", "gpu.driver", "gpu.peermem"}},
    {"gpu.install_order", {"stack.symbols", "gpu.peermem"}},
    {"stack.symbols", {"stack.driver", "stack.core", "gpu.peermem", "soft_rdma.module"}},
    {"stack.driver", {"stack.core", "port.", "sriov.capable", "soft_rdma.link"}},
    {"stack.core", {"port.", "soft_rdma.link"}},
    {"gpu.driver", {"gpu.peermem", "gpu.dmabuf", "gpu.topology"}},
    {"port.pf_down", {"port.state", "port.subnet_manager", "port.gids"}},
    {"port.cable", {"port.state", "port.speed"}},
    {"port.state", {"port.gids", "port.mtu"}},
    {"soft_rdma.module", {"soft_rdma.link"}},
});

bool is_effect(Explanation const& row, std::string_view rule) {
    return rule != row.cause && std::ranges::any_of(row.effects, [&](std::string_view effect) {
               return !effect.empty() &&
                      (effect.ends_with('.') ? rule.starts_with(effect) : rule == effect);
           });
}

std::string name_of(Finding const& finding) {
    return finding.subject.empty() ? finding.rule
                                   : fmt::format("{} {}", finding.rule, finding.subject);
}

// Compares with the subject of log.crash, which is a driver: "mlx5_core".
bool is_driven_by(Machine const& machine, std::string_view subject, std::string_view driver) {
    auto const address = PciAddress::parse(subject);
    auto const* const device = address ? find_pci(machine, *address) : nullptr;
    if (!device) return true;
    auto const& bound = device->driver.peek();
    // mlx5_ib is the other half of mlx5_core.
    return !bound || driver.substr(0, driver.find('_')) == bound->substr(0, bound->find('_'));
}

// A module explains only what it does itself: a refused rdma_rxe does not explain a GPU's failure.
bool is_about_module(std::string_view module, Finding const& effect) {
    bool const of_gpu = module.starts_with("nv") || module == "gdrdrv";
    if (effect.rule.starts_with("gpu.") || effect.subject.starts_with("nv")) return of_gpu;
    if (effect.subject.starts_with("mst_")) return module.starts_with("kernel-mft");
    bool const soft = module == "rdma_rxe" || module == "siw";
    if (effect.rule == "soft_rdma.module") return soft;
    constexpr auto of_nics = std::to_array<std::string_view>({"mlx", "mlnx", "ib_", "rdma_"});
    return !soft &&
           std::ranges::any_of(of_nics, [&](auto const name) { return module.starts_with(name); });
}

// A driver that crashed or hangs keeps its locks: a command that binds its devices again hangs.
bool binds_again(std::string_view command) {
    return contains(command, "modprobe ") || contains(command, "/bind") ||
           contains(command, "/unbind") || contains(command, "driver_override") ||
           contains(command, "devlink dev reload") || contains(command, "devlink health recover") ||
           contains(command, "systemctl restart openibd");
}

void forbid_binding(Finding const& crash, std::vector<Finding>& findings) {
    for (auto& finding : findings) {
        if (!finding.remedy || finding.rule == crash.rule) continue;
        auto& commands = finding.remedy->commands;
        if (std::ranges::none_of(commands, binds_again)) continue;
        commands.clear();
        finding.remedy->note =
            crash.subject.empty()
                ? "reboot first, as log.crash says: a task hangs with the locks of devices"
                : fmt::format(
                      "reboot first, as log.crash says: the kernel crashed in {}, or hangs there",
                      crash.subject);
        finding.remedy->blast_radius = BlastRadius::reboot;
    }
}

}  // namespace

void explain(Machine const& machine, Relatives const& relatives, std::vector<Finding>& findings) {
    for (auto const& finding : findings)
        if (finding.rule == "log.crash" && finding.result == CheckResult::failed)
            forbid_binding(finding, findings);
    auto const about_the_same = [&](Finding const& cause, Finding const& effect) {
        if (cause.rule == "gpu.install_order") return is_about_module("nvidia", effect);
        if (cause.rule == "stack.symbols" || cause.rule == "stack.dkms")
            return is_about_module(cause.subject, effect);
        if (cause.subject.empty() || effect.subject.empty()) return true;
        if (effect.rule == "log.crash") return is_driven_by(machine, cause.subject, effect.subject);
        if (cause.rule == "log.crash") return is_driven_by(machine, effect.subject, cause.subject);
        return relatives.related(cause.subject, effect.subject);
    };
    for (auto const& row : explanations)
        for (auto const& cause : findings) {
            if (cause.rule != row.cause || cause.result != CheckResult::failed) continue;
            for (auto& effect : findings)
                if (!effect.caused_by && is_bad(effect) && is_effect(row, effect.rule) &&
                    cause.caused_by != name_of(effect) && about_the_same(cause, effect))
                    effect.caused_by = name_of(cause);
        }
    std::vector<Finding> causes;
    std::vector<Finding> effects;
    for (auto& finding : findings)
        (finding.caused_by ? effects : causes).push_back(std::move(finding));
    std::ranges::move(effects, std::back_inserter(causes));
    findings = std::move(causes);
}

}  // namespace vfmgr::checks
