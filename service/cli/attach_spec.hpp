// SPDX-License-Identifier: Apache-2.0
// Turns the options of `vfctl attach` into the API's AttachmentSpec. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/attachment.hpp"

namespace vfmgr {

struct AttachArguments {
    std::string vm;
    std::string pf;
    std::optional<std::uint16_t> vf;
    std::string network;
    std::string pool;
    std::string reservation;
    std::string address;
    std::string mac;
    std::string vlan;  // ID[:QOS[:PROTO]]
    std::string trust;
    std::string spoofchk;
    std::string link_state;
    std::string query_rss;
    std::string node_guid;
    std::string port_guid;
    std::optional<std::uint16_t> msix_vectors;
    std::string roce;
    std::optional<std::uint32_t> min_tx_rate_mbps;
    std::optional<std::uint32_t> max_tx_rate_mbps;
    std::string persistence;
    std::vector<std::string> best_effort;
    bool verify = false;
    std::optional<std::uint32_t> verify_timeout_seconds;
    std::string verify_profile;
    std::optional<std::uint32_t> verify_every_seconds;
};

// The caller resolves the PF, which may be a name; nullopt: none is given.
[[nodiscard]] Result<AttachmentSpec> attachment_spec(AttachArguments const& arguments,
                                                     std::optional<PciAddress> const& pf);

[[nodiscard]] Result<Vlan> parse_vlan(std::string_view text);
[[nodiscard]] Result<bool> parse_on_off(std::string_view option, std::string_view text);

}  // namespace vfmgr
