// SPDX-License-Identifier: Apache-2.0
// What vf-guest has configured, in one small file for each attachment in /run/vf-guest: vf-guest
// cleans up after itself even after a restart. One process at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/json_fwd.hpp"
#include "guest-tools/net/address_check.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

struct Configured {
    std::string attachment;
    std::optional<MacAddress> mac;
    std::optional<Guid> guid{};  // instead, on InfiniBand
    std::string ifname;
    std::int32_t ifindex = 0;  // a new netdev has another one
    IpAddress address;
    std::uint8_t prefix_length = 24;
    std::uint32_t mtu = 1500;
    std::string rdma_device{};
    bool rdma_device_ours = false;  // a software link that vf-guest created
    ArpSettings arp_before{};       // the netdev's own values of changed settings
    bool complete = false;          // configured to the end; otherwise only begun
    bool operator==(Configured const&) const = default;
};

// Whether an attachment, which the host names, may be part of a file's name: letters, digits and
// `also`.
[[nodiscard]] bool fits_file_name(std::string_view attachment, std::string_view also);

class StateFolder {
  public:
    explicit StateFolder(std::string path) : path_(std::move(path)) {}
    // Leaves out files that can't be read: at worst something stays configured.
    [[nodiscard]] std::vector<Configured> load() const;
    [[nodiscard]] Result<void> save(Configured const& configured) const;
    void forget(std::string const& attachment) const;

  private:
    [[nodiscard]] std::string file(std::string const& attachment) const;
    std::string path_;
};

// Configures a VF's netdev as the host requires, with an RDMA device, and undoes it. Waits for the
// kernel's events. One thread.

// Sets the netdev up with its MTU, waits for the carrier, sets the address with its ARP settings
// and source route, and provides the RDMA device: hardware's, or else SoftRoCE, on InfiniBand
// hardware's alone. If the network has rdma: none, it neither waits for hardware nor adds SoftRoCE.
// Fails when the port is not in the network's partition, and when another machine has the
// address, unless a run is requested, which checks that itself. Saves `state` as soon as there is
// something to clean up.
[[nodiscard]] Result<Configured> configure(GuestAttachment const& desired, Netdev const& known,
                                           StateFolder const& state, Deadline deadline);

// Removes what configure() set up, and its state. When the netdev has gone, only the source route's
// rule is left of all that, and is removed, too.
[[nodiscard]] Result<void> clean_up(Configured const& configured, StateFolder const& state,
                                    Deadline deadline);

}  // namespace vfmgr::guest

extern template struct vfmgr::Json<vfmgr::guest::Configured>;
