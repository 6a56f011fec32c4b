// SPDX-License-Identifier: Apache-2.0
// A PF that is open for changes of its VFs: a netlink socket, and the sysfs file that identifies
// the PF's network interface. Kept from one step to the next, because finding the interface takes
// longer than setting it. Owned by one thread at a time; the caller holds the PF's claim.
#pragma once

#include "api/os/descriptor.hpp"
#include "api/types/pf_info.hpp"
#include "vfmgr/kernel/sysfs.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

struct PfNetdev {
    std::string name;
    int ifindex = 0;
    LinkLayer link_layer = LinkLayer::ethernet;
    bool operator==(PfNetdev const&) const = default;
};

class OpenPf {
  public:
    // not_found without such a device.
    [[nodiscard]] static Result<OpenPf> open(LinuxKernelRoots const& roots, PciAddress const& pf,
                                             Deadline deadline);

    // Asks the kernel whether this interface is still the PF's, with its name and number. False
    // where one file can't answer that: with no interface, or with several (representors). Then
    // open the PF again.
    [[nodiscard]] bool unchanged() const;
    // Empty when the PF has none.
    [[nodiscard]] std::optional<PfNetdev> const& netdev() const { return netdev_; }
    [[nodiscard]] bool has_vf(std::uint16_t index) const;  // checks now
    [[nodiscard]] NlSocket& socket() { return socket_; }

  private:
    OpenPf(NlSocket socket, FileDescriptor folder)
        : socket_(std::move(socket)), folder_(std::move(folder)) {}

    NlSocket socket_;
    FileDescriptor folder_;  // the PF's, O_PATH
    std::optional<PfNetdev> netdev_;
    FileDescriptor uevent_;     // of the PF's only interface
    std::string event_ifname_;  // what uevent_ read for this name and number
};

}  // namespace vfmgr
