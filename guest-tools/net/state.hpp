// SPDX-License-Identifier: Apache-2.0
// What vf-guest has configured, one small file for each attachment in /run/vf-guest, so that it
// cleans up after itself also when it was restarted. One process at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "guest-tools/net/arp_settings.hpp"

namespace vfmgr::guest {

struct Configured {
    std::string attachment;
    MacAddress mac;
    std::string ifname;
    std::int32_t ifindex = 0;  // a netdev that came anew has another
    IpAddress address;
    std::uint8_t prefix_length = 24;
    std::uint32_t mtu = 1500;
    std::string rdma_device;
    bool rdma_device_ours = false;  // a software link that we made
    ArpSettings arp_before;         // what the netdev had, where we set others
    bool complete = false;          // configured to the end; otherwise only begun
    bool operator==(Configured const&) const = default;
};
void to_json(nlohmann::json& out, Configured const& configured);

class StateFolder {
  public:
    explicit StateFolder(std::string path) : path_(std::move(path)) {}
    // Files that can't be read are left out: at worst something stays configured.
    [[nodiscard]] std::vector<Configured> load() const;
    [[nodiscard]] Result<void> save(Configured const& configured) const;
    void forget(std::string const& attachment) const;

  private:
    [[nodiscard]] std::string file(std::string const& attachment) const;
    std::string path_;
};

}  // namespace vfmgr::guest
