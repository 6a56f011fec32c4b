// SPDX-License-Identifier: Apache-2.0
// Memory for RDMA and VMs: how much may be locked, huge pages, the NIC's node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "api/types/text.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;

// Returns the words that follow `name`, in the line that starts with it.
std::vector<std::string_view> fields_of(std::string_view text, std::string_view name) {
    for (auto const line : lines_in(text))
        if (line.starts_with(name)) return words_in(line.substr(name.size()));
    return {};
}

// CAP_IPC_LOCK, in the mask of /proc/self/status.
bool may_lock_all(std::string_view status) {
    constexpr unsigned ipc_lock = 14;
    auto const fields = fields_of(status, "CapEff:");
    auto const mask =
        fields.empty() ? std::nullopt : parse_digits(fields[0], {.base = 16, .digits_max = 16});
    return mask && (*mask >> ipc_lock & 1U) != 0;
}

// Judges this process, and programs that start in the same place: a daemon and a shell may differ,
// and the limit does not bind root's programs.
std::vector<Finding> judge_locked(Machine const& machine) {
    if (machine.rdma_devices() && machine.rdma_devices()->empty())
        return {not_applicable("there is no RDMA device")};
    auto const limits = machine.facts.text("/proc/self/limits");
    if (!limits) return {unknown("", limits.error())};
    auto const fields = fields_of(*limits, "Max locked memory");
    if (fields.empty()) return {unknown("", {"Max locked memory in /proc/self/limits", 0})};
    std::vector<Evidence> const evidence{
        {"/proc/self/limits", fmt::format("Max locked memory {}", fmt::join(fields, " "))}};
    if (fields[0] == "unlimited")
        return {ok("", "programs started here may lock all memory", evidence)};
    auto const bytes = parse_digits(fields[0], {});
    if (!bytes) return {unknown("", {"Max locked memory in /proc/self/limits", 0})};
    if (may_lock_all(machine.facts.text("/proc/self/status").value_or("")))
        return {ok("", "root's programs may lock all memory (CAP_IPC_LOCK)", evidence)};
    // A bandwidth test registers a few megabytes for each connection, applications much more.
    constexpr std::uint64_t enough_bytes = 64 * mebibyte;
    auto const text = *bytes >= mebibyte ? fmt::format("{} MiB", *bytes / mebibyte)
                                         : fmt::format("{} KiB", *bytes / 1024);
    if (*bytes >= enough_bytes)
        return {ok("", fmt::format("programs started here may lock {}", text), evidence)};
    if (auto const hidden = unseen(machine, "/proc/self/status")) return {*hidden};
    return {
        warning("",
                fmt::format("programs started here may lock only {}, but memory that RDMA "
                            "reads and writes must be locked (ENOMEM from ibv_reg_mr)",
                            text),
                by_command("printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' > "
                           "/etc/security/limits.d/90-rdma.conf",
                           "log in again afterwards; for systemd units, set LimitMEMLOCK=infinity"),
                evidence)};
}

// --- huge pages ---

struct HugePages {
    std::string size;  // "2 MiB"
    std::uint64_t total = 0, free = 0;
};

// Formats "2048kB", the kernel's name for a size.
std::string page_size(std::string_view kib) {
    constexpr std::uint64_t in_gib = 1 << 20, in_mib = 1 << 10;
    auto const number = parse_digits(kib.substr(0, kib.find("kB")), {}).value_or(0);
    if (number >= in_gib) return fmt::format("{} GiB", number / in_gib);
    return number >= in_mib ? fmt::format("{} MiB", number / in_mib)
                            : fmt::format("{} KiB", number);
}

std::vector<HugePages> huge_pages(Machine const& machine) {
    constexpr std::string_view folder = "/sys/kernel/mm/hugepages/hugepages-";
    constexpr std::string_view count_file = "/nr_hugepages";
    auto const number = [&](std::string const& path) {
        return parse_digits(machine.facts.text(path).value_or(""), {}).value_or(0);
    };
    std::vector<HugePages> all;
    for (auto const& [path, fact] :
         machine.facts.files("/sys/kernel/mm/hugepages/*/nr_hugepages")) {
        auto const base = std::string(path.substr(0, path.size() - count_file.size()));
        all.push_back({page_size(base.substr(folder.size())), number(std::string(path)),
                       number(base + "/free_hugepages")});
    }
    auto const meminfo = machine.facts.text("/proc/meminfo").value_or("");
    auto const of = [&](std::string_view name) {
        auto const fields = fields_of(meminfo, name);
        return fields.empty() ? 0 : parse_digits(fields[0], {}).value_or(0);
    };
    if (all.empty() && of("HugePages_Total:") > 0)
        all.push_back({page_size(std::to_string(of("Hugepagesize:"))), of("HugePages_Total:"),
                       of("HugePages_Free:")});
    std::erase_if(all, [](HugePages const& pages) { return pages.total == 0; });
    return all;
}

std::vector<Finding> judge_huge_pages(Machine const& machine) {
    auto const meminfo = machine.facts.text("/proc/meminfo");
    if (!meminfo) return {unknown("", meminfo.error())};
    std::string text;
    std::vector<Finding> findings;
    // Pages that VMs hold are where they should be.
    bool const vms = !machine.vfio_holders() || !machine.vfio_holders()->empty();
    for (auto const& [size, total, free] : huge_pages(machine)) {
        text += fmt::format("{}{} of {} huge pages of {} are free", text.empty() ? "" : ", ", free,
                            total, size);
        if (free > 0 || vms) continue;
        findings.push_back(warning(
            "",
            fmt::format("all {} huge pages of {} are in use, but not by a VM that has a VF: a VM "
                        "that needs some can't start",
                        total, size),
            by_hand("find the processes that use them: grep -l 'KernelPageSize: *2048 kB' "
                    "/proc/[0-9]*/smaps; to reserve more, write to "
                    "/sys/kernel/mm/hugepages/*/nr_hugepages"),
            {{"/proc/meminfo", fmt::format("HugePages_Total {} HugePages_Free {}", total, free)}}));
    }
    if (text.empty()) text = "no huge pages are reserved, and none are needed";
    return or_else(std::move(findings), ok("", text));
}

// --- nodes ---

struct NumaNode {
    std::string cpus;  // "0-31"; empty: memory only, a GPU's
    std::uint64_t memory_kib = 0;
};

std::map<int, NumaNode> nodes_of(Machine const& machine) {
    constexpr std::string_view prefix = "/sys/devices/system/node/node";
    constexpr std::string_view cpulist = "/cpulist";
    std::map<int, NumaNode> nodes;
    for (auto const& [path, fact] : machine.facts.files("/sys/devices/system/node/node*/cpulist")) {
        auto const digits =
            path.substr(prefix.size(), path.size() - prefix.size() - cpulist.size());
        auto const number = parse_digits(digits, {.max = INT32_MAX});
        if (!number) continue;
        NumaNode node{std::string(machine.facts.text(path).value_or("")), 0};
        auto const meminfo = machine.facts.text(fmt::format("{}{}/meminfo", prefix, digits));
        auto const fields =
            fields_of(meminfo.value_or(""), fmt::format("Node {} MemTotal:", digits));
        if (!fields.empty()) node.memory_kib = parse_digits(fields[0], {}).value_or(0);
        nodes.emplace(static_cast<int>(*number), std::move(node));
    }
    return nodes;
}

Finding judge_node(Machine const& machine, PciDevice const& nic,
                   std::map<int, NumaNode> const& nodes) {
    auto const subject = to_string(nic.address);
    auto const path = file_of(nic.address, "numa_node");
    if (!nic.numa_node()) return not_known(subject, "the firmware does not report its NUMA node");
    auto const found = nodes.find(*nic.numa_node());
    auto const name = name_of(machine, nic);
    if (found == nodes.end())
        return unknown(subject, {fmt::format("node {} of {}", *nic.numa_node(), name), 0});
    auto const& [number, node] = *found;
    constexpr double kib_per_gib = 1 << 20;
    auto const meminfo = fmt::format("/sys/devices/system/node/node{}/meminfo", number);
    if (auto const hidden = unseen(machine, meminfo, subject)) return *hidden;
    if (node.memory_kib == 0)
        return warning(subject,
                       fmt::format("{} is on NUMA node {}, which has no memory: everything that it "
                                   "reads and writes crosses to another node",
                                   name, number),
                       by_hand("install memory in that socket's slots, or move the NIC to a slot "
                               "of a socket that has memory",
                               BlastRadius::reboot),
                       {evidence_of(machine, path)});
    if (node.cpus.empty())
        return warning(subject,
                       fmt::format("{} is on NUMA node {}, which has memory but no CPUs: pin VMs "
                                   "to another node that is near (numactl --hardware)",
                                   name, number),
                       by_hand("set the VM's CPUs and memory node by hand; a GPU's memory is such "
                               "a node, and not for a VM"),
                       {evidence_of(machine, path)});
    return ok(subject,
              fmt::format("{} is on NUMA node {}, with CPUs {} and {:.0f} GiB", name, number,
                          node.cpus, static_cast<double>(node.memory_kib) / kib_per_gib));
}

std::vector<Finding> judge_numa(Machine const& machine) {
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    auto const nodes = nodes_of(machine);
    std::string bare_memory;
    std::size_t with_cpus = 0;
    for (auto const& [number, node] : nodes)
        if (node.cpus.empty())
            bare_memory += fmt::format("{}{}", bare_memory.empty() ? "" : ", ", number);
        else
            ++with_cpus;
    if (nodes.empty()) {
        auto const one = machine.facts.text("/sys/devices/system/node/node0/cpulist");
        if (!one && !one.error().absent()) return {unknown("", one.error())};
    }
    std::vector<Finding> findings;
    auto const nics = sriov_nics(machine);
    if (nics.empty() && bare_memory.empty())
        return {nothing_in(machine.pci(), "there is no NIC with SR-IOV to be near to")};
    if (with_cpus > 1 || !bare_memory.empty())
        for (auto const* nic : nics) findings.push_back(judge_node(machine, *nic, nodes));
    if (!bare_memory.empty())
        findings.push_back(ok(
            "", fmt::format("NUMA nodes without CPUs, such as a GPU's memory: {}; pin no VM there",
                            bare_memory)));
    return or_else(std::move(findings), ok("", "all memory is equally near"));
}

constexpr std::array memory_group{
    Rule{"memory.locked", "RDMA programs may lock memory",
         "ibv_reg_mr(3); getrlimit(2), RLIMIT_MEMLOCK; software RDMA guide, locked memory",
         judge_locked},
    Rule{"memory.huge_pages", "Huge pages are available for VMs that need them",
         "Linux Documentation/admin-guide/mm/hugetlbpage.rst", judge_huge_pages, AppliesTo::host},
    Rule{"memory.numa", "NICs are near memory and CPUs",
         "Linux Documentation/admin-guide/mm/numaperf.rst", judge_numa, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const memory_rules = memory_group;

}  // namespace vfmgr::checks
