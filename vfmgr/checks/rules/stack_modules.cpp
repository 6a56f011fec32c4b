// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/log.hpp"
#include "vfmgr/checks/rules/stack.hpp"
#include "vfmgr/machine/driver_log.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

// Loads a module by name, or installs it if it is missing.
Remedy load_module(Machine const& machine, std::string const& module, std::string_view option) {
    auto const command = "modprobe " + module;
    auto const there = module_exists(machine, module);
    if (!there || *there) return by_command(command);
    auto remedy = by_kernel_module(machine, module, option);
    remedy.note += fmt::format("{}DOCA-OFED also has {}", remedy.note.empty() ? "" : "; ", module);
    return remedy;
}

LogLine const* last_line_of(Machine const& machine, std::string const& word) {
    return last_line(machine, [&](LogLine const& line) { return contains(line.text, word); });
}

// What an error of probe() says about a function, whatever its driver.
std::pair<std::string_view, std::string_view> meaning_of(int error) {
    constexpr std::string_view update =
        "update the card's firmware, or boot the kernel that worked before";
    constexpr std::string_view power =
        "power the machine off and on; if it happens again, try the "
        "card in another slot";
    switch (error) {
        case ENOMEM:
            return {"it found too little memory, queues or interrupts",
                    "make fewer VFs, or free memory, then bind it again"};
        case EBUSY:
            return {"its memory regions or interrupts belong to another device or driver",
                    "see the lines before it: journalctl -k; boot with pci=realloc if its BARs "
                    "overlap others"};
        case EIO:
        case ENODEV:
        case ENXIO:
            return {"the card does not respond correctly", power};
        case ETIMEDOUT:
            return {"its firmware did not answer in time", power};
        case EINVAL:
        case EOPNOTSUPP:
        case EPROTO:
            return {"its firmware and its driver do not fit together", update};
        case EACCES:
        case EPERM:
            return {"it was forbidden", "see the lines before it: journalctl -k"};
        default:
            return {"see the lines before it", "find the reason: journalctl -k"};
    }
}

// drivers/vfio/pci/vfio_pci_core.c, drivers/vfio/vfio_main.c.
std::pair<std::string_view, std::string_view> meaning_for_vfio(int error) {
    if (error == EINVAL || error == ENODEV)
        return {"it has no IOMMU group", "switch the IOMMU on, as iommu.enabled says"};
    if (error == EBUSY)
        return {"it is a PF with VFs, or another driver has it",
                "remove its VFs, or unbind the other driver, then bind it again"};
    return meaning_of(error);
}

// Null if the driver has not given up on it, or has said something about it since.
LogLine const* line_of_failed_probe(KernelLog const& log, PciDevice const& device) {
    LogLine const* last = nullptr;
    for (auto const& line : log.lines) {
        auto const failure = parse_probe_failure(line.text);
        if (failure && failure->device == device.address) last = &line;
        if (failure || !last) continue;
        auto const& of = line.by_device;
        if (of && of->device == device.address &&
            of->driver == parse_probe_failure(last->text)->driver)
            last = nullptr;
    }
    return last;
}

// The driver was there, and gave up: loading it again would change nothing.
std::optional<Finding> failed_probe(Machine const& machine, PciDevice const& device) {
    auto const* const line = machine.log() ? line_of_failed_probe(*machine.log(), device) : nullptr;
    if (!line) return std::nullopt;
    auto const failure = *parse_probe_failure(line->text);
    auto const [why, remedy] = contains(failure.driver, "vfio") ? meaning_for_vfio(failure.error)
                                                                : meaning_of(failure.error);
    return failed(to_string(device.address),
                  fmt::format("{} gave up on {} with {}: {}", failure.driver,
                              to_string(device.address), errno_name(failure.error), why),
                  by_hand(std::string(remedy), BlastRadius::none), {evidence_of(*line)});
}

std::string blacklisted_in(Machine const& machine, std::string_view module) {
    auto const expected = fmt::format("blacklist {}", module);
    for (auto const& [path, fact] : machine.facts.files("/etc/modprobe.d/*.conf"))
        for (auto const line : lines_in(fact->bytes))
            if (line.starts_with(expected) && words_in(line)[1] == module) return std::string(path);
    return {};
}

std::optional<Finding> without_driver(Machine const& machine, PciDevice const& device) {
    if (device.driver()) return std::nullopt;
    auto const address = to_string(device.address);
    auto const link = file_of(device.address, "driver");
    if (auto hidden = unseen(machine, link)) {
        auto probe = failed_probe(machine, device);
        return probe ? probe : hidden;
    }
    auto const driver = std::string(driver_of_connectx(device));
    std::vector<Evidence> evidence{absence_evidence(link)};
    if (auto const* line = last_line_of(machine, address)) evidence.push_back(evidence_of(*line));
    bool const loaded = module_loaded(machine, driver);
    if (auto const file = blacklisted_in(machine, driver); !loaded && !file.empty())
        return failed(
            address, fmt::format("{} has no driver: {} blacklists {}", address, file, driver),
            {{fmt::format("sed -i '/^blacklist {}/d' {}", driver, file), "modprobe " + driver},
             BlastRadius::none},
            {{file, "blacklist " + driver}});
    if (auto probe = failed_probe(machine, device)) return probe;
    if (!machine.modules()) return unknown(address, machine.modules().error());
    if (!loaded)
        return failed(address, fmt::format("{} has no driver: {} is not loaded", address, driver),
                      load_module(machine, driver,
                                  driver == "mlx4_core" ? "CONFIG_MLX4_CORE" : "CONFIG_MLX5_CORE"),
                      evidence);
    return failed(
        address, fmt::format("{} has no driver, though {} is loaded", address, driver),
        by_command(fmt::format("echo {} > /sys/bus/pci/drivers/{}/bind", address, driver),
                   "if it fails again, see the kernel's log for the reason: journalctl -k"),
        evidence);
}

// A RoCE LAG has one RDMA device for all ports of a card, at its first function.
PciDevice const* shares_device_of(Machine const& machine, PciDevice const& device) {
    for (auto const& other : *machine.pci()) {
        if (other.address != device.address && share_slot(other.address, device.address) &&
            !other.pf() && !other.rdma_devices().empty() &&
            other.rdma_devices().front().find("bond") != std::string::npos)
            return &other;
    }
    return nullptr;
}

std::optional<Finding> without_rdma(Machine const& machine, PciDevice const& device) {
    if (!device.rdma_devices().empty() || shares_device_of(machine, device)) return std::nullopt;
    auto const address = to_string(device.address);
    auto const folder = file_of(device.address, "infiniband");
    if (auto hidden = unseen(machine, folder)) return hidden;
    if (auto hidden = unread_so_far(machine, address)) return hidden;
    auto const driver = std::string(rdma_driver_of_connectx(device));
    std::vector<Evidence> evidence{absence_evidence(folder)};
    if (!module_present(machine, driver))
        return failed(
            address,
            fmt::format("{} has {} but no RDMA device: {} is not loaded", address, *device.driver(),
                        driver),
            load_module(machine, driver,
                        driver == "mlx4_ib" ? "CONFIG_MLX4_INFINIBAND" : "CONFIG_MLX5_INFINIBAND"),
            evidence);
    if (auto const* line = last_line_of(machine, driver + ":"))
        evidence.push_back(evidence_of(*line));
    auto const detail = fmt::format("{} has no RDMA device, though {} is loaded", address, driver);
    // Only mlx5 switches RoCE by devlink.
    if (driver == "mlx4_ib")
        return failed(address, detail,
                      by_hand("see the kernel's log for the reason: journalctl -k --grep mlx4"),
                      evidence);
    return failed(address, detail,
                  by_enabling_roce(device.address,
                                   "RoCE may be switched off for it; if it failed, see the "
                                   "kernel's log for the reason: journalctl -k"),
                  evidence);
}

// NICs of other vendors: nobody here knows which driver each should have, but a driver that gave up
// says so.
void judge_other_drivers(Machine const& machine, std::vector<Finding>& findings) {
    for (auto const* const nic : functions_of(machine, is_network))
        if (!is_connectx(*nic) && !nic->driver())
            if (auto probe = failed_probe(machine, *nic)) findings.push_back(std::move(*probe));
}

}  // namespace

std::vector<Finding> judge_driver(Machine const& machine) {
    std::vector<Finding> findings;
    if (!machine.pci() && machine.log())
        return judge_logged_nics(machine, [&](PciDevice const& nic) {
            auto probe = failed_probe(machine, nic);
            return probe ? std::vector{std::move(*probe)} : std::vector<Finding>();
        });
    judge_other_drivers(machine, findings);
    int judged = 0;
    for (auto const* device : own_connectx(machine)) {
        // A VF of a host may have no driver: it waits for attachment. A foreign driver has its
        // reason.
        bool const waits =
            machine.kind == CheckedMachine::host && (device->pf() || !device->pf.is_read());
        bool const ours = !device->driver() || device->driver() == driver_of_connectx(*device);
        if (waits || !ours || device->revision() == 0xff) continue;
        ++judged;
        auto finding = without_driver(machine, *device);
        if (!finding) finding = without_rdma(machine, *device);
        if (finding) findings.push_back(std::move(*finding));
    }
    if (judged == 0)
        return or_else(std::move(findings),
                       nothing_in(machine.pci(), "this machine uses no ConnectX NIC"));
    return or_else(std::move(findings),
                   ok("", fmt::format("{} ConnectX function{} a driver and an RDMA device", judged,
                                      judged == 1 ? " has" : "s have")));
}

std::vector<Finding> judge_rdma_core(Machine const& machine) {
    if (!machine.modules()) return {unknown("", machine.modules().error())};
    if (!machine.rdma_devices()) return {unknown("", machine.rdma_devices().error())};
    auto const cards = own_connectx(machine);
    bool const soft = module_loaded(machine, "rdma_rxe") || module_loaded(machine, "siw");
    if (cards.empty() && machine.rdma_devices()->empty() && !soft)
        return {not_applicable("there is neither a ConnectX NIC nor an RDMA device")};
    auto const driver = cards.empty() ? "" : std::string(rdma_driver_of_connectx(*cards.front()));
    if (!module_present(machine, "ib_core")) {
        if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
        auto remedy =
            load_module(machine, driver.empty() ? "ib_core" : driver, "CONFIG_INFINIBAND");
        if (read_ofed(machine).installed)
            remedy = {{"/etc/init.d/openibd restart"}, BlastRadius::host};
        return {failed("", "ib_core is not loaded, so there is no RDMA", std::move(remedy),
                       {{"/proc/modules", "no ib_core"}})};
    }
    if (!module_present(machine, "ib_uverbs"))
        return {failed("", "ib_uverbs is not loaded, so no program can use RDMA",
                       load_module(machine, "ib_uverbs", "CONFIG_INFINIBAND_USER_ACCESS"),
                       {{"/proc/modules", "ib_core without ib_uverbs"}})};
    if (!machine.rdma_devices()->empty())
        return {ok("", fmt::format("ib_core and ib_uverbs are loaded, with {} RDMA device{}",
                                   machine.rdma_devices()->size(),
                                   machine.rdma_devices()->size() == 1 ? "" : "s"))};
    std::vector<Evidence> evidence{{"/sys/class/infiniband", "is empty"}};
    if (cards.empty())
        return {ok("", "ib_core and ib_uverbs are loaded; there is no software RDMA device yet",
                   evidence)};
    if (!module_present(machine, driver))
        return {failed(
            "", fmt::format("ib_core is loaded but ibstat shows nothing: {} is not loaded", driver),
            load_module(machine, driver, "CONFIG_MLX5_INFINIBAND"), evidence)};
    Remedy remedy = by_hand(
        fmt::format("find the reason in the kernel's log: dmesg | grep -e mlx -e {}", driver));
    if (read_ofed(machine).installed) remedy = {{"/etc/init.d/openibd restart"}, BlastRadius::host};
    return {failed("",
                   fmt::format("ib_core and {} are loaded, but there is no RDMA device", driver),
                   std::move(remedy), evidence)};
}

namespace {

bool is_of_rdma(std::string_view name) {
    constexpr auto beginnings =
        std::to_array<std::string_view>({"ib_",       "_ib_",       "rdma_",   "iw_",
                                         "mlx",       "mst_",       "nvidia",  "nv_",
                                         "siw",       "rxe",        "bnxt_re", "irdma",
                                         "qedr",      "hfi1",       "efa",     "udp_sock_create",
                                         "nvme_rdma", "nvmet_rdma", "rpcrdma", "rds_rdma",
                                         "knem",      "gdrdrv"});
    return std::ranges::any_of(beginnings, [&](auto const one) { return name.starts_with(one); });
}

struct Refusal {
    SymbolLine first;
    LogLine const* line = nullptr;
    int symbols = 0;
    bool other_version = false, udp_tunnel = false;
};

std::map<std::string_view, Refusal> refusals_in(KernelLog const& log) {
    std::map<std::string_view, Refusal> refusals;
    for (auto const& line : log.lines) {
        auto const symbol = parse_symbol_line(line.text);
        if (!symbol || (!is_of_rdma(symbol->module) && !is_of_rdma(symbol->symbol))) continue;
        auto const [at, is_new] = refusals.try_emplace(symbol->module, Refusal{*symbol, &line});
        auto& refusal = at->second;
        ++refusal.symbols;
        refusal.other_version |= symbol->other_version;
        refusal.udp_tunnel |=
            symbol->symbol.starts_with("udp_sock_create") || contains(symbol->symbol, "udp_tunnel");
    }
    return refusals;
}

// How to get a module that fits the loaded stack.
Remedy fitting_module(Machine const& machine, std::string const& module, Ofed const& ofed) {
    if (module.starts_with("nvidia") || module.starts_with("nv_"))
        return by_hand("rebuild NVIDIA's modules, as gpu.install_order describes");
    auto const file = module_file(machine, module);
    if (ofed.running && file && file->starts_with("kernel/"))
        return by_hand(fmt::format(
            "{} is the kernel's own, and OFED replaces what it needs: install OFED's {} "
            "(mlnxofedinstall --with-nvmf for NVMe, the packages srp, iser, isert), or do without "
            "it; OFED has no rdma_rxe",
            module, module));
    return by_hand(
        fmt::format("rebuild {} against the loaded stack{}", module,
                    ofed.running ? ": its headers are in /usr/src/ofa_kernel/default" : ""));
}

Finding of_refusal(Machine const& machine, std::string const& module, Refusal const& refusal) {
    std::vector<Evidence> evidence{evidence_of(*refusal.line)};
    if (refusal.other_version) {
        auto const ofed = read_ofed(machine);
        auto const stack = ofed.running ? "OFED " + ofed.running->text : "the kernel's own";
        return failed(
            module,
            fmt::format(
                "{} was built against another RDMA stack than the loaded one ({}): {} differs",
                module, stack, refusal.first.symbol),
            fitting_module(machine, module, ofed), evidence);
    }
    if (refusal.udp_tunnel)
        return failed(module,
                      fmt::format("{} did not load: {} is in udp_tunnel, which is not loaded",
                                  module, refusal.first.symbol),
                      by_command(fmt::format("modprobe -a udp_tunnel ip6_udp_tunnel {}", module),
                                 "insmod does not load the modules that a module needs"),
                      evidence);
    return failed(
        module,
        fmt::format("{} did not load: no loaded module provides {}", module, refusal.first.symbol),
        {{"depmod -a", "modprobe " + module},
         BlastRadius::none,
         "insmod does not load the modules that a module needs; if modprobe fails in the same way, "
         "the module was built for another kernel: reinstall it for this kernel"},
        evidence);
}

}  // namespace

namespace {

// One finding for each module, though each attempt to load it has a line.
std::vector<Finding> built_for_others(Machine const& machine) {
    std::map<std::string, Finding> findings;
    for (auto const& line : machine.log()->lines) {
        auto const other = parse_other_kernel_line(line.text);
        if (!other || !is_of_rdma(other->module)) continue;
        std::string const module(other->module);
        if (module_loaded(machine, module)) continue;
        auto remedy =
            by_hand(fmt::format("install {} for kernel {}: dkms autoinstall -k {}, or the "
                                "package that was built for it",
                                module, machine.release(), machine.release()));
        if (module.starts_with("mst_"))
            remedy.note += "; mstconfig and mlxconfig need no module for a PCI address";
        findings.insert_or_assign(
            module, failed(module,
                           fmt::format("{} was built for kernel {}, but {} runs", module,
                                       other->built_for, machine.release()),
                           std::move(remedy), {evidence_of(line)}));
    }
    std::vector<Finding> all;
    for (auto& [module, finding] : findings) all.push_back(std::move(finding));
    return all;
}

}  // namespace

std::vector<Finding> judge_symbols(Machine const& machine) {
    if (!machine.log()) return {unknown("", machine.log().error())};
    auto findings = built_for_others(machine);
    for (auto const& [module, refusal] : refusals_in(*machine.log())) {
        auto name = std::string(module);
        std::ranges::replace(name, '-', '_');
        // A module that is loaded by now has been fixed since.
        if (!module_loaded(machine, name)) findings.push_back(of_refusal(machine, name, refusal));
    }
    return or_else(
        std::move(findings),
        ok("", fmt::format("no known message about an RDMA or GPU module that was refused for its "
                           "symbols or its kernel in {}",
                           lines_read(*machine.log()))));
}

}  // namespace vfmgr::checks
