// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/in_use.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

std::string const detach_remedy = "detach the VF from its VM first: vfctl detach";

std::optional<fs::path> group_node(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const group = iommu_group_of(roots, pci);
    if (!group) return std::nullopt;
    std::error_code error;
    for (auto const* const prefix : {"", "noiommu-"}) {
        auto node = roots.dev / "vfio" / (prefix + std::to_string(*group));
        if (fs::exists(node, error)) return node;
    }
    return std::nullopt;  // no device of the group is bound to a VFIO driver
}

std::vector<fs::path> node_paths(LinuxKernelRoots const& roots, PciAddress const& pci) {
    std::vector<fs::path> paths;
    if (auto node = group_node(roots, pci)) paths.push_back(std::move(*node));
    for (auto const& name : entries(pci_folder(roots, pci) / "vfio-dev"))
        paths.push_back(roots.dev / "vfio/devices" / name);
    return paths;
}

Error unreadable(fs::path const& process, std::string const& call, int error) {
    return {Problem::vf_in_use,
            fmt::format("the open files of process {} can't be read, so it may be using a VF: {}",
                        process.filename().string(), std::generic_category().message(error)),
            "run vfmgr with CAP_SYS_PTRACE and CAP_DAC_OVERRIDE",
            {errno_cause(call, error)}};
}

// Does not ask a remote file system for fresh attributes: a dead NFS server must not hang us.
std::optional<dev_t> device_number(fs::path const& descriptor) {
    struct statx status{};
    if (::statx(AT_FDCWD, descriptor.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0)
        return std::nullopt;
    if (!S_ISCHR(status.stx_mode)) return std::nullopt;
    return makedev(status.stx_rdev_major, status.stx_rdev_minor);
}

bool gone(int error) {
    return error == ENOENT || error == ESRCH;
}

// Returns the nodes from `desired` that one process holds. Opening the folder takes only
// CAP_DAC_OVERRIDE, but stat of an entry takes CAP_SYS_PTRACE [src fs/proc/fd.c].
Result<std::set<dev_t>> nodes_held_by(fs::path const& process, std::set<dev_t> const& desired) {
    std::set<dev_t> held;
    auto const folder = process / "fd";
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        auto const number = device_number(it->path());
        if (number && desired.contains(*number)) held.insert(*number);
        if (number) continue;
        // A file without readable attributes (on FUSE, for example) is no VFIO node. An unreadable
        // descriptor may be anything.
        std::error_code hidden;
        static_cast<void>(fs::read_symlink(it->path(), hidden));
        if (hidden && !gone(hidden.value()))
            return fail(unreadable(process, "readlink " + it->path().string(), hidden.value()));
    }
    // A process that ended meanwhile holds nothing.
    if (!error || gone(error.value())) return held;
    return fail(unreadable(process, "opendir " + folder.string(), error.value()));
}

std::string holder_list(std::vector<VfioHolder> const& holders) {
    std::string text;
    for (auto const& holder : holders)
        text += fmt::format("{}{} (pid {})", text.empty() ? "" : ", ", holder.comm, holder.pid);
    return text;
}

Error held_open(VfAt const& vf, std::vector<VfioHolder> const& holders, Cause cause) {
    auto const who = holders.empty() ? std::string("a process") : holder_list(holders);
    return {Problem::vf_in_use,
            fmt::format("VF {} of {} ({}) is held open by {}", vf.id.index, to_string(vf.id.pf),
                        to_string(vf.pci), who),
            detach_remedy,
            {std::move(cause)}};
}

Result<FileDescriptor> open_group(LinuxKernelRoots const& roots, VfAt const& vf,
                                  fs::path const& node) {
    FileDescriptor fd(::open(node.c_str(), O_RDWR | O_CLOEXEC));
    if (fd) return fd;
    auto const error = errno;
    auto cause = errno_cause("open " + node.string(), error);
    if (error != EBUSY)
        return fail({Problem::vf_in_use,
                     fmt::format("{} can't be opened, so VF {} of {} ({}) may be in use: {}",
                                 node.string(), vf.id.index, to_string(vf.id.pf), to_string(vf.pci),
                                 std::generic_category().message(error)),
                     "give vfmgr read and write access to " + node.string(),
                     {std::move(cause)}});
    auto const nodes = vfio_nodes_of(roots, vf.pci);
    VFMGR_TRY(auto const holders, find_holders(roots, nodes));
    return fail(held_open(vf, holders_of(holders, nodes), std::move(cause)));
}

// Every interface that is up has a link-local IPv6 address, which alone does not count as use.
bool link_local(IpAddress const& address) {
    return address.family == IpAddress::Family::v6 && address.octets[0] == 0xfe &&
           (address.octets[1] & 0xc0U) == 0x80;
}

// Returns how this host uses the device; empty when it does not.
std::string use_of(HostNetdevs const& host, Netdev const& netdev) {
    if (netdev.controller_ifindex) return "is part of a bridge or bond";
    if (!netdev.up) return {};
    for (auto const& address : host.addresses)
        if (address.ifindex == netdev.ifindex && !link_local(address.address))
            return "is up and has " + to_string(address.address);
    return {};
}

// True when the VF's netdev is elsewhere: sysfs shows only those of our own network namespace.
// pci-stub and VFIO drivers make none.
bool hides_netdev(LinuxKernelRoots const& roots, PciAddress const& pci) {
    constexpr std::uint64_t ethernet_class = 0x0200;
    auto const driver = driver_of(roots, pci);
    if (!driver || *driver == "pci-stub" || bound_to_vfio(roots, pci)) return false;
    auto const device_class = read_number(pci_folder(roots, pci) / "class");
    return netdevs_of(roots, pci).empty() &&
           (!device_class || (*device_class >> 8U) == ethernet_class);
}

Result<void> check_netdevs(LinuxKernelRoots const& roots, HostNetdevs const& host, VfAt const& vf) {
    auto const subject =
        fmt::format("VF {} of {} ({})", vf.id.index, to_string(vf.id.pf), to_string(vf.pci));
    if (hides_netdev(roots, vf.pci))
        return fail(Problem::vf_in_use,
                    fmt::format("{} has the driver {} but no network interface here: it may be "
                                "used in another network namespace",
                                subject, driver_of(roots, vf.pci).value_or("?")),
                    "move the interface back to the host: ip -n NAMESPACE link set IFACE netns 1");
    for (auto const& name : netdevs_of(roots, vf.pci))
        for (auto const& netdev : host.netdevs) {
            auto const use = netdev.name == name ? use_of(host, netdev) : std::string();
            if (use.empty()) continue;
            return fail(Problem::vf_in_use,
                        fmt::format("{} is used by this host: {} {}", subject, name, use),
                        fmt::format("take it down first: ip link set {} nomaster down", name));
        }
    return {};
}

}  // namespace

std::vector<dev_t> vfio_nodes_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    std::vector<dev_t> numbers;
    for (auto const& path : node_paths(roots, pci)) {
        struct stat status{};
        if (::stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode))
            numbers.push_back(status.st_rdev);
    }
    return numbers;
}

Result<Holders> find_holders(LinuxKernelRoots const& roots, std::vector<dev_t> const& nodes) {
    Holders holders;
    if (nodes.empty()) return holders;
    std::set<dev_t> const desired(nodes.begin(), nodes.end());
    std::error_code error;
    fs::directory_iterator it(roots.proc, error);
    for (fs::directory_iterator const end; !error && it != end; it.increment(error)) {
        auto const pid = process_id(it->path().filename().string());
        // Holds of this process don't count: another thread may hold a group right now.
        if (!pid || *pid == ::getpid()) continue;
        VFMGR_TRY(auto const held, nodes_held_by(it->path(), desired));
        for (auto const node : held)
            holders[node].push_back({*pid, read_text(it->path() / "comm").value_or("?")});
    }
    if (!error) return holders;
    return fail({Problem::vf_in_use,
                 fmt::format("{} can't be read, so any VF may be in use: {}", roots.proc.string(),
                             error.message()),
                 "mount /proc without hidepid",
                 {errno_cause("opendir " + roots.proc.string(), error.value())}});
}

std::vector<VfioHolder> holders_of(Holders const& holders, std::vector<dev_t> const& nodes) {
    std::map<std::int32_t, VfioHolder> by_process;
    for (auto const node : nodes)
        if (auto const found = holders.find(node); found != holders.end())
            for (auto const& holder : found->second) by_process.emplace(holder.pid, holder);
    std::vector<VfioHolder> list;
    list.reserve(by_process.size());
    for (auto& [pid, holder] : by_process) list.push_back(std::move(holder));
    return list;
}

Result<GroupHold> GroupHold::take(LinuxKernelRoots const& roots, std::span<VfAt const> vfs) {
    std::map<fs::path, VfAt> groups;  // several VFs may share a group, which opens only once
    for (auto const& vf : vfs)
        if (auto node = group_node(roots, vf.pci)) groups.emplace(std::move(*node), vf);
    std::vector<FileDescriptor> held;
    for (auto const& [node, vf] : groups) {
        VFMGR_TRY(auto fd, open_group(roots, vf, node));
        held.push_back(std::move(fd));
    }
    return GroupHold(std::move(held));
}

Result<GroupHold> guard_unused(LinuxKernelRoots const& roots, HostNetdevs const& host,
                               std::span<VfAt const> vfs) {
    std::vector<dev_t> all;
    for (auto const& vf : vfs) {
        VFMGR_CHECK(check_netdevs(roots, host, vf));
        for (auto const node : vfio_nodes_of(roots, vf.pci)) all.push_back(node);
    }
    VFMGR_TRY(auto const holders, find_holders(roots, all));
    for (auto const& vf : vfs) {
        auto const by = holders_of(holders, vfio_nodes_of(roots, vf.pci));
        if (!by.empty()) return fail(held_open(vf, by, errno_cause("readlink /proc/*/fd", EBUSY)));
    }
    return GroupHold::take(roots, vfs);
}

}  // namespace vfmgr
