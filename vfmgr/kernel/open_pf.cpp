// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/open_pf.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfmgr/kernel/pf_view.hpp"

namespace vfmgr {
namespace {

// Queries only the given names: a host may have hundreds of other interfaces.
Result<std::optional<PfNetdev>> find_netdev(LinuxKernelRoots const& roots, NlSocket& socket,
                                            std::vector<std::string> const& names,
                                            PciAddress const& pf, Deadline deadline) {
    std::vector<Result<Netdev>> answers;
    for (auto const& name : names) answers.push_back(get_netdev(socket, name, deadline));
    std::vector<Netdev const*> in_its_folder;
    for (auto const& netdev : answers) {
        if (netdev)
            in_its_folder.push_back(&*netdev);
        else if (netdev.error().problem != Problem::not_found)  // that interface left just now
            return fail(netdev.error());
    }
    auto const* const own = own_netdev(roots, std::move(in_its_folder), pf);
    return own ? std::optional(PfNetdev{own->name, own->ifindex, link_layer_of(*own)})
               : std::nullopt;
}

// Reads the interface that the file was opened for, even if renamed since. Returns nothing when the
// interface is gone: kernfs fails with ENODEV.
std::string read_again(FileDescriptor const& uevent) {
    std::array<char, 256> buffer;
    auto const got = ::pread(uevent.get(), buffer.data(), buffer.size(), 0);
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

// The format of net_sysfs: netdev_uevent().
bool names(std::string const& uevent, PfNetdev const& netdev) {
    return uevent.find(fmt::format("INTERFACE={}\nIFINDEX={}\n", netdev.name, netdev.ifindex)) !=
           std::string::npos;
}

}  // namespace

Result<OpenPf> OpenPf::open(LinuxKernelRoots const& roots, PciAddress const& pf,
                            Deadline deadline) {
    auto const path = pci_folder(roots, pf);
    FileDescriptor folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fail(no_such_device(roots, pf, errno));
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    auto const found = netdevs_of(roots, pf);
    OpenPf open(std::move(socket), std::move(folder));
    VFMGR_TRY(open.netdev_, find_netdev(roots, open.socket_, found, pf, deadline));
    if (!open.netdev_ || found.size() != 1) return open;
    FileDescriptor uevent(
        ::open((path / "net" / found.front() / "uevent").c_str(), O_RDONLY | O_CLOEXEC));
    open.event_ifname_ = read_again(uevent);
    if (names(open.event_ifname_, *open.netdev_)) open.uevent_ = std::move(uevent);
    return open;
}

bool OpenPf::unchanged() const {
    return uevent_ && read_again(uevent_) == event_ifname_;
}

bool OpenPf::has_vf(std::uint16_t index) const {
    std::array<char, 1> target;
    auto const link = fmt::format("virtfn{}", index);
    return ::readlinkat(folder_.get(), link.c_str(), target.data(), target.size()) >= 0;
}

}  // namespace vfmgr
