// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/in_use.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <set>
#include <system_error>

#include "api/os/handle.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

std::string const detach_remedy = "detach the VF from its VM first: vfctl detach";

constexpr char const* no_iommu = "noiommu-";

// Builds one string: a thousand VFs have as many groups.
fs::path group_path(LinuxKernelRoots const& roots, std::uint32_t group, char const* prefix) {
    return roots.dev.native() + "/vfio/" + prefix + std::to_string(group);
}

std::optional<fs::path> group_node(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const group = iommu_group_of(roots, pci);
    if (!group) return std::nullopt;
    std::error_code error;
    for (auto const* const prefix : {"", no_iommu}) {
        auto node = group_path(roots, *group, prefix);
        if (fs::exists(node, error)) return node;
    }
    return std::nullopt;  // no device of the group is bound to a VFIO driver
}

Error unreadable_process(fs::path const& process, std::string const& call, int error) {
    return {Problem::vf_in_use,
            fmt::format("the open files of process {} can't be read, so it may be using a VF: {}",
                        process.filename().string(), std::generic_category().message(error)),
            "run vfmgr with CAP_SYS_PTRACE and CAP_DAC_OVERRIDE",
            {errno_cause(call, error)}};
}

bool gone(int error) {
    return error == ENOENT || error == ESRCH;
}

using Folder = Handle<DIR, ::closedir>;

// A process's folder fd in /proc, and what is looked for in it. Paths are relative to the folder:
// to resolve a path through /proc takes longer than the call itself.
struct Descriptors {
    Folder folder;
    std::set<dev_t> const& nodes;
    bool writers = false;  // of sriov_numvfs, too
};

struct HeldFiles {
    std::set<dev_t> nodes;
    std::optional<PciAddress> writes_numvfs_of;
};

// A reader of sriov_numvfs hangs too, but blocks no other process.
bool for_writing(fs::path const& information) {
    auto const text = read_text(information).value_or("");
    auto const at = text.find("flags:");
    if (at == text.npos) return false;
    auto const digits = text.find_first_of("01234567", at);
    unsigned flags = 0;
    if (digits != text.npos)
        std::from_chars(text.data() + digits, text.data() + text.size(), flags, 8);
    return (flags & static_cast<unsigned>(O_ACCMODE)) != O_RDONLY;
}

// Returns the file's path; nothing, and the reason in errno, when it can't be read.
std::optional<std::string> path_of(Descriptors const& of, char const* name) {
    std::array<char, PATH_MAX> target;
    auto const size = ::readlinkat(::dirfd(of.folder.get()), name, target.data(), target.size());
    if (size < 0) return std::nullopt;
    return std::string(target.data(), static_cast<std::size_t>(size));
}

// Returns the PF when the file is its sriov_numvfs.
std::optional<PciAddress> pf_of_numvfs(std::string const& path) {
    if (!path.ends_with("/sriov_numvfs")) return std::nullopt;
    auto const pf = PciAddress::parse(fs::path(path).parent_path().filename().string());
    return pf ? std::optional(*pf) : std::nullopt;
}

// Does not ask a remote file system for fresh attributes: a dead NFS server must not hang us.
// Opening the folder takes only CAP_DAC_OVERRIDE, but stat of an entry takes CAP_SYS_PTRACE
// [src fs/proc/fd.c].
Result<void> read_descriptor(fs::path const& process, Descriptors const& of, char const* name,
                             HeldFiles& held) {
    struct statx status{};
    if (::statx(::dirfd(of.folder.get()), name, AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0) {
        // A file without readable attributes (on FUSE, for example) is no VFIO node. An unreadable
        // descriptor may be anything.
        if (path_of(of, name)) return {};
        auto const error = errno;
        if (gone(error)) return {};
        return fail(
            unreadable_process(process, "readlink " + (process / "fd" / name).string(), error));
    }
    if (S_ISCHR(status.stx_mode)) {
        auto const number = makedev(status.stx_rdev_major, status.stx_rdev_minor);
        if (of.nodes.contains(number)) held.nodes.insert(number);
    } else if (of.writers && S_ISREG(status.stx_mode) && !held.writes_numvfs_of) {
        auto const pf = pf_of_numvfs(path_of(of, name).value_or(""));
        if (pf && for_writing(process / "fdinfo" / name)) held.writes_numvfs_of = pf;
    }
    return {};
}

Result<void> read_descriptors(fs::path const& process, Descriptors& of, HeldFiles& held) {
    auto const folder = process / "fd";
    of.folder.reset(::opendir(folder.c_str()));
    int error = of.folder ? 0 : errno;
    Result<void> outcome;
    while (error == 0) {
        errno = 0;  // readdir() also returns null at the end
        auto const* const entry = ::readdir(of.folder.get());
        if (entry == nullptr) {
            error = errno;
            break;
        }
        if (entry->d_name[0] == '.') continue;
        auto const read = read_descriptor(process, of, entry->d_name, held);
        if (!read && outcome) outcome = read;
    }
    // A process that ended meanwhile holds nothing.
    if (error == 0 || gone(error)) return outcome;
    return fail(unreadable_process(process, "opendir " + folder.string(), error));
}

OpenFiles find(LinuxKernelRoots const& roots, std::vector<dev_t> const& nodes, bool writers) {
    OpenFiles found{Holders{}, {}};
    std::set<dev_t> const desired(nodes.begin(), nodes.end());
    std::error_code error;
    fs::directory_iterator it(roots.proc, error);
    for (fs::directory_iterator const end; !error && it != end; it.increment(error)) {
        auto const pid = process_id(it->path().filename().string());
        // Holds of this process don't count: another thread may hold a group right now.
        if (!pid || *pid == ::getpid()) continue;
        Descriptors of{nullptr, desired, writers};
        HeldFiles held;
        auto const read = read_descriptors(it->path(), of, held);
        if (!read && found.holders) found.holders = fail(read.error());
        if (held.nodes.empty() && !held.writes_numvfs_of) continue;
        auto const comm = read_text(it->path() / "comm").value_or("?");
        if (found.holders)
            for (auto const node : held.nodes) (*found.holders)[node].push_back({*pid, comm});
        if (held.writes_numvfs_of)
            found.numvfs_writers.push_back({*held.writes_numvfs_of, *pid, comm});
    }
    if (error && found.holders)
        found.holders = fail(Error{Problem::vf_in_use,
                                   fmt::format("{} can't be read, so any VF may be in use: {}",
                                               roots.proc.string(), error.message()),
                                   "mount /proc without hidepid",
                                   {errno_cause("opendir " + roots.proc.string(), error.value())}});
    return found;
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

VfioNodes read_vfio_nodes(LinuxKernelRoots const& roots, PciAddress const& pci) {
    VfioNodes nodes;
    nodes.group = iommu_group_of(roots, pci);
    auto const add = [&](fs::path const& path, auto member) {
        struct stat status{};
        if (::stat(path.c_str(), &status) != 0) return false;
        if (!S_ISCHR(status.st_mode)) return true;
        nodes.numbers.push_back(status.st_rdev);
        if (!nodes.paths) nodes.paths = VfioPaths{{}, {}, status.st_uid};
        (*nodes.paths).*member = path.string();
        return true;
    };
    auto const group = &VfioPaths::group;
    if (nodes.group && !add(group_path(roots, *nodes.group, ""), group))
        add(group_path(roots, *nodes.group, no_iommu), group);
    // Nodes of single devices came with Linux 6.6. Without their folder no VF has one.
    auto const devices = roots.dev / "vfio/devices";
    if (::access(devices.c_str(), F_OK) != 0) return nodes;
    for (auto const& name : entries(pci_folder(roots, pci) / "vfio-dev"))
        add(devices / name, &VfioPaths::device);
    return nodes;
}

std::vector<dev_t> vfio_nodes_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    return read_vfio_nodes(roots, pci).numbers;
}

OpenFiles find_open_files(LinuxKernelRoots const& roots, std::vector<dev_t> const& nodes) {
    auto found = find(roots, nodes, true);
    if (nodes.empty()) found.holders = Holders{};  // whatever can't be read holds nothing of these
    return found;
}

Result<Holders> find_holders(LinuxKernelRoots const& roots, std::vector<dev_t> const& nodes) {
    if (nodes.empty()) return Holders{};
    return find(roots, nodes, false).holders;
}

std::vector<NumVfsWriter> find_numvfs_writers(LinuxKernelRoots const& roots) {
    return find(roots, {}, true).numvfs_writers;
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
