// SPDX-License-Identifier: Apache-2.0
// Turns the options of `vfctl attach`, `vfctl attachment set` and `vfctl vf set` into what the API
// takes. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/attachment_patch.hpp"

namespace vfmgr {

struct AttachArguments {
    std::string vm;
    std::string external;  // name of a holder, instead of a VM
    std::optional<std::uint32_t> uid;
    std::string pf;
    std::string vf;  // a number, for a VF of `pf`, or a name of a VF
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
    std::string guest_address;
    bool add_ports = false;
    bool add_vsock = false;
    std::string guest_plane;
    std::optional<std::uint32_t> count;  // of VFs, all of one request
    std::string near;
    bool verify = false;
    std::optional<std::uint32_t> verify_timeout_seconds;
    std::string verify_profile;
    std::optional<std::uint32_t> verify_every_seconds;
    std::vector<std::string> unset;  // not of `vfctl attach`, nor is the next
    bool allow_reset = false;
};

// The VF to attach; without a number any free one of the PF, without a PF one that the daemon
// chooses.
struct AttachedVf {
    std::optional<PciAddress> pf{};
    std::optional<std::uint16_t> index{};
};
// The caller resolves the names of PF and VF. Refuses a VM and a holder at once, and neither.
[[nodiscard]] Result<AttachmentSpec> attachment_spec(AttachArguments const& arguments,
                                                     AttachedVf const& vf);

// What the options of settings name; refuses a setting that --unset names, too.
struct NamedSettings {
    VfSpec set;
    std::vector<VfAttribute> unset;
};
[[nodiscard]] Result<NamedSettings> named_settings(AttachArguments const& arguments,
                                                   std::string const& help);

// A VLAN without QOS and PROTO has the usual ones, as in iproute2. Refuses a patch of nothing.
[[nodiscard]] Result<AttachmentPatch> attachment_patch(AttachArguments const& arguments);

[[nodiscard]] Result<Vlan> parse_vlan(std::string_view text);
[[nodiscard]] Result<bool> parse_on_off(std::string_view option, std::string_view text);

}  // namespace vfmgr
