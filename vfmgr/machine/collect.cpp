// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/collect.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>

#include "vfmgr/machine/command.hpp"
#include "vfmgr/machine/files.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"
#include "vfmgr/machine/read_devices.hpp"

namespace vfmgr::checks {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds command_time_max{10};

std::string release_of(std::string const& root) {
    Facts facts;
    Files files(root, "");
    files.read({"/proc/sys/kernel/osrelease"}, facts);
    return std::string(facts.text("/proc/sys/kernel/osrelease").value_or(""));
}

using Running = std::vector<std::pair<std::string, std::future<CommandFact>>>;

// Runs in parallel with the file reads: a program may take long.
void start(std::string const& line, Running& running) {
    running.emplace_back(line, std::async(std::launch::async, run_line, line,
                                          steady_clock::now() + command_time_max));
}

bool applies(CommandSource const& command, Files& files) {
    return std::ranges::all_of(
        std::array{command.only_where, command.and_where},
        [&](auto const where) { return where.empty() || files.exists(where); });
}

void start_all(Collection const& what, Files& files, Facts& facts, Running& running) {
    for (auto const& expected : command_sources) {
        // Where it has nothing to report on, its output is known to be absent.
        facts.patterns.emplace(expected.line);
        if (!applies(expected, files)) continue;
        if (what.rdma_links && expected.line.starts_with("vfctl "))
            running.emplace_back(expected.line, std::async(std::launch::async, what.rdma_links));
        else
            start(std::string(expected.line), running);
    }
}

// Queries all units at once. The query starts nothing; talking to libvirt would. systemd takes time
// for each unit, so the query names only those that it has; the others are not found.
void ask_units(Files& files, Running& running) {
    if (!files.exists("/run/systemd/system")) return;
    std::vector<std::string_view> there;
    for (auto const unit : unit_sources)
        if (std::ranges::any_of(unit_folders, [&](std::string_view folder) {
                return files.exists(fmt::format("{}/{}", folder, unit));
            }))
            there.push_back(unit);
    if (there.empty()) there.assign(unit_sources.begin(), unit_sources.end());
    start(unit_question(there), running);
}

// A ConnectX's firmware shows its settings to root only, by its own tools, one card at a time.
void ask_firmware(Files& files, Facts& facts, Running& running) {
    if (::geteuid() != 0) return;
    auto const* const tool = files.exists("/usr/bin/mstconfig")   ? "mstconfig"
                             : files.exists("/usr/bin/mlxconfig") ? "mlxconfig"
                                                                  : nullptr;
    Reads reads;
    auto const devices = read_pci_devices(facts, reads);
    for (auto const& device : devices ? *devices : std::vector<PciDevice>()) {
        if (!is_connectx(device) || is_vf(device) || device.address.function != 0) continue;
        // Without the tool, the output is known to be absent.
        auto const query = firmware_query(tool ? tool : "mstconfig", device.address);
        facts.patterns.insert(query);
        if (tool) start(query, running);
    }
}

// Reads which symbols nvidia-peermem's file needs, in which versions. modprobe unpacks and reads
// the file, and loads nothing.
void start_reading_peermem(Facts const& facts, std::string const& release, Running& running) {
    auto const folder = "/lib/modules/" + release + "/";
    auto const listed = facts.text(folder + "modules.dep");
    auto const file = find_module(listed.value_or(""), "nvidia_peermem");
    if (!file || file->path.starts_with('/')) return;
    start(fmt::format("modprobe --dump-modversions {}{}", folder, file->path), running);
}

// Collects what only the machine itself can answer, not a copy of its files.
void ask_this_machine(Files& files, std::string const& release, Running& running, Facts& into) {
    read_kernel_log("/dev/kmsg", into);
    if (!into.text("/dev/kmsg") && applies(journal_source, files))
        start(std::string(journal_source.line), running);
    start_reading_peermem(into, release, running);
    ask_about_netdevs(into);
    ask_about_rdma_devices(into);
    for (auto& [line, fact] : running) {
        into.patterns.insert(line);
        into.commands.emplace(line, fact.get());
    }
}

enum class About { rdma_devices, all_else };

Facts read_files(std::string const& root, std::string const& release, About what) {
    Facts facts;
    Files files(root, release);
    for (auto const& expected : file_sources)
        if (expected.pattern.starts_with("/sys/class/infiniband/") == (what == About::rdma_devices))
            files.read(expected, facts);
    if (what == About::all_else)
        for (auto const& expected : owner_sources) files.read(expected, facts);
    return facts;
}

void add(Facts read, Facts& to) {
    to.files.merge(read.files);
    to.patterns.merge(read.patterns);
}

}  // namespace

Facts collect(Collection const& what) {
    Facts facts;
    facts.machine = what.machine;
    facts.collected_at = system_clock().now();
    auto const release = release_of(what.root);
    Files files(what.root, release);
    bool const this_machine = what.root.empty();
    Running running;
    if (this_machine) {
        ask_units(files, running);
        start_all(what, files, facts, running);
    }
    // A SoftRoCE port has room for 1024 GIDs, each a file: they are read in parallel with the rest.
    auto rdma_devices =
        std::async(std::launch::async, read_files, what.root, release, About::rdma_devices);
    add(read_files(what.root, release, About::all_else), facts);
    for (auto const pattern : link_sources) files.read_link(pattern, facts);
    for (auto const pattern : folder_sources) files.list(pattern, facts);
    if (this_machine && what.machine == CheckedMachine::host) ask_firmware(files, facts, running);
    read_configuration_spaces(files, facts);
    read_vfio_holders(files, facts);
    if (this_machine) ask_this_machine(files, release, running, facts);
    add(rdma_devices.get(), facts);
    return facts;
}

Facts collect_vfio_holders() {
    Facts facts;
    Files files({}, {});
    read_vfio_holders(files, facts);
    return facts;
}

}  // namespace vfmgr::checks
