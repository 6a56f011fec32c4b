// SPDX-License-Identifier: Apache-2.0
#include "service/cli/network_edit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "service/cli/choice.hpp"

namespace vfmgr {
namespace {

template <class T>
Result<void> set_or_none(std::optional<T>& member, std::string_view what, std::string const& text,
                         std::uint32_t low, std::uint32_t high) {
    if (text.empty()) return {};
    member.reset();
    if (text == "none") return {};
    VFMGR_TRY(auto const value, number(what, text, low, high));
    member = static_cast<T>(value);
    return {};
}

Result<void> set_pkey(std::optional<Pkey>& member, std::string const& text) {
    if (text.empty()) return {};
    member.reset();
    if (text == "none") return {};
    VFMGR_TRY(member, parse_pkey(text));
    return {};
}

Result<void> set_ranges(Network& network, std::vector<std::string> const& texts) {
    if (texts.empty()) return {};
    network.ranges.clear();
    if (texts == std::vector<std::string>{"none"}) return {};
    for (auto const& text : texts) {
        VFMGR_TRY(auto const range, Range<IpAddress>::parse(text));
        network.ranges.push_back(range);
    }
    return {};
}

Result<void> remove(Network& network, PciAddress const& pf) {
    if (std::erase_if(network.pfs, [&](NetworkPf const& on) { return on.pf == pf; }) > 0) return {};
    return fail(Problem::not_found,
                fmt::format("{} does not carry network {}", to_string(pf), network.name),
                fmt::format("vfctl network show {} lists its PFs", network.name));
}

void put(Network& network, NetworkPf const& added) {
    auto const there = std::ranges::find(network.pfs, added.pf, &NetworkPf::pf);
    if (there == network.pfs.end())
        network.pfs.push_back(added);
    else
        *there = added;
}

}  // namespace

Result<Network> edit(Network network, NetworkEdit const& desired) {
    if (!desired.prefix.empty()) {
        VFMGR_TRY(network.prefix, IpPrefix::parse(desired.prefix));
    }
    VFMGR_CHECK(set_or_none(network.vlan, "the VLAN", desired.vlan, 1, 4094));
    VFMGR_CHECK(set_pkey(network.pkey, desired.pkey));
    if (!desired.mtu.empty()) {
        VFMGR_TRY(network.mtu, number("the MTU", desired.mtu, network_mtu_min, network_mtu_max));
    }
    if (!desired.rdma.empty()) {
        VFMGR_TRY(network.rdma,
                  parse_choice<RdmaMode>("rdma", desired.rdma, "see vfctl network set --help"));
    }
    VFMGR_CHECK(set_or_none(network.dscp, "the DSCP", desired.dscp, 0, dscp_max));
    VFMGR_CHECK(set_ranges(network, desired.ranges));
    for (auto const& pf : desired.pfs_removed) VFMGR_CHECK(remove(network, pf));
    for (auto const& added : desired.pfs) put(network, added);
    return network;
}

}  // namespace vfmgr
