// SPDX-License-Identifier: Apache-2.0
// Complaints of NICs, GPUs and the IOMMU in the kernel's log since boot.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "vfmgr/checks/rules/log.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

enum class Kind { fatal, recovered, hot, module, power, busy, no_uar };
using Complaints = std::map<std::pair<std::string, Kind>, Complaint>;

std::optional<Kind> kind_of(Mlx5Line const& parsed) {
    constexpr int severity_error = 3, severity_warning = 4;
    if (parsed.function == "poll_health") {
        if (parsed.text == "device's health compromised - reached miss count") return Kind::fatal;
        if (parsed.text.starts_with("Fatal error ") && parsed.text.ends_with(" detected"))
            return Kind::fatal;
    }
    if (auto const severity = parse_health_severity(parsed.text);
        severity && parsed.function == "print_health_info") {
        if (*severity <= severity_error) return Kind::fatal;
        if (*severity == severity_warning) return Kind::recovered;
    }
    if (parsed.function == "cmd_work_handler" && parsed.text == "failed to allocate command entry")
        return Kind::busy;
    if (parsed.function == "mlx5_pcie_event" && parse_slot_power(parsed.text)) return Kind::power;
    if (parsed.function == "mlx5_port_module_event")
        if (auto const error = parse_module_error(parsed.text))
            return error->error == "High Temperature" ? Kind::hot : Kind::module;
    return std::nullopt;
}

// health.c prints these when a card has recovered.
bool recovers(Mlx5Line const& parsed) {
    return parsed.text.starts_with("health recovery succeeded") ||
           parsed.text.starts_with("health recovery succeed");
}

Complaints complaints_in(KernelLog const& log) {
    Complaints all;
    for (auto const& line : log.lines) {
        auto const& of_mlx4 = line.by_device;
        if (of_mlx4 && of_mlx4->driver == "mlx4_core" && of_mlx4->text == "Missing UAR, aborting")
            all[{to_string(of_mlx4->device), Kind::no_uar}].add(line);
        auto const parsed =
            contains(line.text, "mlx5_") ? parse_mlx5_line(line.text) : std::nullopt;
        if (!parsed) continue;
        auto const subject = parsed->device ? to_string(*parsed->device) : std::string();
        if (auto const kind = kind_of(*parsed)) all[{subject, *kind}].add(line);
        if (!recovers(*parsed)) continue;
        if (auto const lost = all.find({subject, Kind::fatal}); lost != all.end()) {
            all.insert_or_assign({subject, Kind::recovered}, lost->second);
            all.erase(lost);
        }
    }
    return all;
}

Finding of_no_uar(Machine const& machine, std::string const& subject,
                  std::vector<Evidence> const& evidence) {
    bool const guest = machine.kind == CheckedMachine::guest;
    return failed(subject, "the driver found no second BAR (UAR), and gave up on the NIC",
                  by_hand(guest ? "give the VM machine type q35 and UEFI firmware, which place "
                                  "64-bit BARs; then restart it"
                                : "enable Above 4G Decoding in the firmware's set-up, or boot with "
                                  "pci=realloc",
                          BlastRadius::reboot),
                  evidence);
}

// What that command should have created is missing; the driver's clients report it themselves.
Finding of_busy(Machine const& machine, std::string const& subject, std::string const& times,
                std::vector<Evidence> evidence) {
    auto const* const lost =
        machine.log() ? find_line(*machine.log(), {"ipoib_intf_alloc failed"}) : nullptr;
    if (lost) evidence.push_back(evidence_of(*lost));
    return warning(
        subject,
        fmt::format("the driver had no room for a command to the firmware{}, so what the command "
                    "creates {}",
                    times, lost ? "is missing: the IPoIB netdev of a port" : "may be missing"),
        {lost ? std::vector<std::string>{"modprobe -r ib_ipoib", "modprobe ib_ipoib"}
              : std::vector<std::string>(),
         lost ? BlastRadius::netdev : BlastRadius::none,
         "if it happens again, boot another kernel: Linux 5.4.77 had this fault at boot, 5.4.70 "
         "did not"},
        std::move(evidence));
}

Finding of_complaint(Machine const& machine, std::string const& subject, Kind kind,
                     Complaint const& complaint) {
    std::vector<Evidence> const evidence{evidence_of(*complaint.line)};
    auto const parsed = parse_mlx5_line(complaint.line->text);
    auto const error = parsed ? parse_module_error(parsed->text) : std::nullopt;
    switch (kind) {
        case Kind::fatal:
            return failed(
                subject, "the NIC's firmware stopped answering" + counted(complaint),
                subject.empty()
                    ? by_hand("find the NIC: devlink health show")
                    : Remedy{{fmt::format("devlink health recover pci/{} reporter fw_fatal",
                                          subject)},
                             BlastRadius::host,
                             "the driver restarts the NIC; if that fails, power the machine off "
                             "and on, and check for newer firmware"},
                evidence);
        case Kind::recovered:
            return warning(subject, "the NIC's firmware had a fault" + counted(complaint),
                           by_hand("check for newer firmware; the vendor asks for the output of "
                                   "mstdump and the log"),
                           evidence);
        case Kind::hot:
            return failed(
                subject,
                fmt::format("the module in port {} is too hot, which takes its link down{}",
                            error ? error->module + 1 : 0, counted(complaint)),
                by_hand("improve the airflow at the slot, or use a module that needs less power"),
                evidence);
        case Kind::module:
            return warning(subject,
                           fmt::format("the NIC rejects the module in port {}: {}{}",
                                       error ? error->module + 1 : 0, error ? error->error : "",
                                       counted(complaint)),
                           by_hand("use another module or cable"), evidence);
        case Kind::power:
            return warning(
                subject,
                fmt::format(
                    "the slot offers {} W, which is less than the NIC and its modules may need{}",
                    parse_slot_power(parsed->text).value_or(0), counted(complaint)),
                by_hand("move the NIC to a slot of 75 W, or raise the slot's power limit in the "
                        "firmware's set-up; with low-power modules this may never matter"),
                evidence);
        case Kind::busy:
            return of_busy(machine, subject, counted(complaint), evidence);
        case Kind::no_uar:
            break;
    }
    return of_no_uar(machine, subject, evidence);
}

std::vector<Finding> judge_nic_log(Machine const& machine) {
    if (!machine.log()) return {unknown("", machine.log().error())};
    std::vector<Finding> findings;
    for (auto const& [key, complaint] : complaints_in(*machine.log()))
        findings.push_back(of_complaint(machine, key.first, key.second, complaint));
    return or_else(
        std::move(findings),
        own_connectx(machine).empty()
            ? not_applicable("this machine uses no ConnectX NIC")
            : ok("", fmt::format(
                         "no known complaint about a ConnectX's firmware, module or power in {}",
                         lines_read(*machine.log()))));
}

// Returns the only device of that address; without a domain, in any domain.
PciDevice const* device_of(std::vector<PciDevice> const& devices, IommuFault const& fault) {
    PciDevice const* found = nullptr;
    for (auto const& device : devices) {
        if (fault.domain_known && device.address == fault.device) return &device;
        if (fault.domain_known) continue;
        auto address = device.address;
        address.domain = fault.device.domain;
        if (address != fault.device) continue;
        if (found) return nullptr;
        found = &device;
    }
    return found;
}

// NICs, and devices that a VM had: those with lines of a VFIO driver.
std::vector<PciDevice> logged_devices(KernelLog const& log) {
    auto devices = logged_nics(log);
    for (auto const& line : log.lines) {
        auto const& of = line.by_device;
        if (!of || !contains(of->driver, "vfio") ||
            std::ranges::find(devices, of->device, &PciDevice::address) != devices.end())
            continue;
        devices.emplace_back().address = of->device;
        devices.back().driver = std::optional(std::string(of->driver));
    }
    return devices;
}

Remedy for_fault(Machine const& machine, PciDevice const& device) {
    if (on_vfio(device))
        return by_hand(
            "check the VM's log, and its NIC and GPU drivers: the VM that it is attached to "
            "requested memory that is not its own, and the IOMMU prevented it");
    auto const* const mode =
        machine.parameters() ? find_parameter(*machine.parameters(), "iommu") : nullptr;
    if (!mode || mode->value != "pt")
        return by_hand(
            "boot with iommu=pt, so that the host's own DMA is not translated; if the faults "
            "continue, the driver or the firmware is at fault",
            BlastRadius::reboot);
    return by_hand(
        "check for a newer driver and firmware: one of them requests memory that it had freed");
}

std::vector<Finding> judge_iommu_faults(Machine const& machine) {
    if (!machine.log()) return {unknown("", machine.log().error())};
    auto const logged = machine.pci() ? std::vector<PciDevice>() : logged_devices(*machine.log());
    auto const& devices = machine.pci() ? *machine.pci() : logged;
    std::map<PciDevice const*, Complaint> by_device;
    for (auto const& line : machine.log()->lines) {
        auto const fault = parse_iommu_fault(line.text);
        auto const* const device = fault ? device_of(devices, *fault) : nullptr;
        if (!device) continue;
        if (machine.pci() && !is_network(*device) && !is_nvidia_gpu(*device)) continue;
        by_device[device].add(line);
    }
    std::vector<Finding> findings;
    for (auto const& [device, faults] : by_device)
        findings.push_back(warning(
            to_string(device->address),
            fmt::format("the IOMMU blocked {} DMA request{} of {}, the first to {}", faults.lines,
                        faults.lines == 1 ? "" : "s", to_string(device->address),
                        parse_iommu_fault(faults.line->text)->address),
            for_fault(machine, *device), {evidence_of(*faults.line)}));
    if (!machine.pci()) findings.push_back(unknown("", machine.pci().error()));
    return or_else(
        std::move(findings),
        ok("", fmt::format(
                   "no known message about a NIC's or GPU's DMA that AMD-Vi or DMAR blocked in {}",
                   lines_read(*machine.log()))));
}

std::vector<Finding> judge_peermem_log(Machine const& machine) {
    if (!machine.log()) return {unknown("", machine.log().error())};
    // Newer versions print no line there; what comes before "ERROR" is function and line.
    constexpr std::string_view module = "nvidia-peermem ";
    constexpr std::string_view words =
        " ERROR detected invalid context, skipping further processing";
    Complaint complaint;
    for (auto const& line : machine.log()->lines)
        if (line.text.starts_with(module) && contains(line.text, words)) complaint.add(line);
    if (complaint.line)
        return {warning(
            "", "nvidia-peermem found registrations that were already gone" + counted(complaint),
            by_hand(
                "a program ended, or its GPU was reset, while its memory was registered with a "
                "NIC: restart that program; if it happens again, use DMA-BUF or a newer driver"),
            {evidence_of(*complaint.line)})};
    if (!module_loaded(machine, "nvidia_peermem"))
        return {not_applicable("nvidia_peermem is not loaded")};
    return {ok(
        "", fmt::format("no known complaint of nvidia-peermem in {}", lines_read(*machine.log())))};
}

}  // namespace

std::string counted(Complaint const& complaint) {
    return complaint.lines == 1 ? "" : fmt::format(" ({} times)", complaint.lines);
}

bool is_judged_by_mlx5_rule(LogLine const& line) {
    auto const parsed = parse_mlx5_line(line.text);
    return parsed && (kind_of(*parsed) || recovers(*parsed));
}

namespace {

constexpr std::array device_log{
    Rule{"log.crash", "The kernel did not crash or hang in a driver of NICs or GPUs",
         "Linux arch/x86/mm/fault.c, lib/bug.c, kernel/hung_task.c, kernel/watchdog.c",
         judge_crashes},
    Rule{"log.pcie", "PCIe links of NICs have no errors",
         "Linux drivers/pci/pcie/{aer,dpc,err}.c, drivers/pci/hotplug/pciehp_ctrl.c",
         judge_pcie_ports},
    Rule{"log.mlx5", "The NICs report no faults",
         "Linux drivers/net/ethernet/mellanox/mlx5/core/{health,events}.c and mlx4/main.c; "
         "recordings and near misses",
         judge_nic_log},
    Rule{"log.nic", "Drivers of NICs report no errors",
         "Linux drivers/net/ethernet/{mellanox,intel,broadcom}; rules/log_messages.cpp names each",
         judge_nic_lines},
};
constexpr std::array log_{
    Rule{"log.iommu_fault", "The IOMMU blocked no NIC or GPU",
         "Linux drivers/iommu/amd/iommu.c and intel/dmar.c; a recording of IO_PAGE_FAULT",
         judge_iommu_faults},
    Rule{"log.peermem", "nvidia-peermem reports no faults",
         "open-gpu-kernel-modules nvidia-peermem.c, nv_get_p2p_free_callback; recordings",
         judge_peermem_log},
};

}  // namespace

constinit std::span<Rule const> const device_log_rules = device_log;
constinit std::span<Rule const> const log_rules = log_;

}  // namespace vfmgr::checks
