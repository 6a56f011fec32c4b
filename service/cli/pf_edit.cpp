// SPDX-License-Identifier: Apache-2.0
#include "service/cli/pf_edit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/types/text.hpp"
#include "service/cli/choice.hpp"

namespace vfmgr {
namespace {

constexpr auto network_remedy =
    "give name=…,prefix=…,host=… and optionally vlan=…, mtu=…, rdma=auto|rxe|none, dscp=…";

Result<std::map<std::string, std::string>> members_of(std::string_view text) {
    std::map<std::string, std::string> members;
    while (!text.empty()) {
        auto const end = std::min(text.find(','), text.size());
        auto const part = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        auto const equals = part.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return fail(Problem::invalid_request,
                        fmt::format("'{}' in --network is not of the form key=value", part),
                        network_remedy);
        auto const [at, added] =
            members.emplace(std::string(part.substr(0, equals)), part.substr(equals + 1));
        if (!added)
            return fail(Problem::invalid_request,
                        fmt::format("--network has '{}' twice", at->first), network_remedy);
    }
    return members;
}

Result<void> set_member(Network& network, std::string const& key, std::string const& value) {
    if (key == "name") {
        network.name = value;
    } else if (key == "prefix") {
        VFMGR_TRY(network.prefix, IpPrefix::parse(value));
    } else if (key == "host") {
        VFMGR_TRY(network.host_address, IpAddress::parse(value));
    } else if (key == "vlan" && value == "none") {
        network.vlan.reset();
    } else if (key == "vlan") {
        VFMGR_TRY(auto const id, number("vlan", value, 1, 4094));
        network.vlan = static_cast<std::uint16_t>(id);
    } else if (key == "mtu") {
        VFMGR_TRY(network.mtu, number("mtu", value, 1280, 9216));
    } else if (key == "rdma") {
        VFMGR_TRY(network.rdma, parse_choice<RdmaMode>("rdma", value, network_remedy));
    } else if (key == "dscp" && value == "none") {
        network.dscp.reset();
    } else if (key == "dscp") {
        VFMGR_TRY(auto const dscp, number("dscp", value, 0, dscp_max));
        network.dscp = static_cast<std::uint8_t>(dscp);
    } else {
        return fail(Problem::invalid_request, fmt::format("--network has no key '{}'", key),
                    network_remedy);
    }
    return {};
}

}  // namespace

Result<std::uint32_t> number(std::string const& what, std::string_view text, std::uint32_t low,
                             std::uint32_t high) {
    auto const value = parse_digits(text, {.max = high});
    if (value && *value >= low) return static_cast<std::uint32_t>(*value);
    return fail(Problem::invalid_request,
                fmt::format("{} is a number from {} to {}, not '{}'", what, low, high, text),
                fmt::format("give a number in this range for {}", what));
}

Result<Network> edit_network(PfSpec const& spec, std::string const& text) {
    VFMGR_TRY(auto const members, members_of(text));
    auto const name = members.find("name");
    if (name == members.end())
        return fail(Problem::invalid_request,
                    fmt::format("--network {} does not name the network", text), network_remedy);
    auto const* const present = find_network(spec, name->second);
    if (!present && (!members.contains("prefix") || !members.contains("host")))
        return fail(Problem::invalid_request,
                    fmt::format("the new network '{}' needs prefix and host", name->second),
                    network_remedy);
    Network network = present ? *present : Network{};
    for (auto const& [key, value] : members) VFMGR_CHECK(set_member(network, key, value));
    return network;
}

Result<PfSpec> edit(PfSpec spec, PfEdit const& desired) {
    if (desired.num_vfs) spec.num_vfs = desired.num_vfs;
    if (desired.mode) spec.mode = *desired.mode;
    if (desired.vf_driver) spec.vf_driver = desired.vf_driver;
    if (desired.vf_driver == "none") spec.vf_driver.reset();
    for (auto const& name : desired.networks_removed)
        if (std::erase_if(spec.networks, [&](Network const& n) { return n.name == name; }) == 0)
            return fail(Problem::not_found, fmt::format("the PF has no network '{}'", name),
                        "vfctl pf show PF lists its networks");
    for (auto const& text : desired.networks) {
        VFMGR_TRY(Network network, edit_network(spec, text));
        auto const same = [&](Network const& n) { return n.name == network.name; };
        auto const at = std::find_if(spec.networks.begin(), spec.networks.end(), same);
        if (at == spec.networks.end())
            spec.networks.push_back(std::move(network));
        else
            *at = std::move(network);
    }
    return spec;
}

}  // namespace vfmgr
