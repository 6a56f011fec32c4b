// SPDX-License-Identifier: Apache-2.0
// What vf-guest has configured, in one small file for each attachment in /run/vf-guest: vf-guest
// cleans up after itself even after a restart. One process at a time.
#pragma once

#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/json_fwd.hpp"
#include "guest-tools/net/arp_settings.hpp"

namespace vfmgr::guest {

struct Configured {
    std::string attachment;
    MacAddress mac;
    std::string ifname;
    std::int32_t ifindex = 0;  // a new netdev has another one
    IpAddress address;
    std::uint8_t prefix_length = 24;
    std::uint32_t mtu = 1500;
    std::string rdma_device;
    bool rdma_device_ours = false;  // a software link that vf-guest created
    ArpSettings arp_before;         // the netdev's own values of changed settings
    bool complete = false;          // configured to the end; otherwise only begun
    bool operator==(Configured const&) const = default;
};

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

}  // namespace vfmgr::guest

extern template struct vfmgr::Json<vfmgr::guest::Configured>;
