// SPDX-License-Identifier: Apache-2.0
#include "api/types/pool.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t selected_values_max = 64;  // of one selector

}  // namespace

Result<PfVfs> PfVfs::parse(std::string_view text) {
    auto const slash = text.find('/');
    PfVfs vfs;
    VFMGR_TRY(vfs.pf, PciAddress::parse(text.substr(0, slash)));
    if (slash == std::string_view::npos) return vfs;
    auto const range = parse_digit_range(text.substr(slash + 1), {.max = UINT16_MAX});
    if (!range)
        return fail(Problem::invalid_request,
                    fmt::format("{} does not name VFs of a PF", quoted(text)),
                    "write 0000:01:00.0 for all of them, or 0000:01:00.0/0-3");
    vfs.first = static_cast<std::uint16_t>(range->first);
    vfs.last = static_cast<std::uint16_t>(range->last);
    return vfs;
}

std::string to_string(PfVfs const& vfs) {
    auto pf = to_string(vfs.pf);
    if (vfs.first == 0 && vfs.last == UINT16_MAX) return pf;
    if (vfs.first == vfs.last) return fmt::format("{}/{}", pf, vfs.first);
    return fmt::format("{}/{}-{}", pf, vfs.first, vfs.last);
}

template <class F, Of<PoolSelectors> V>
void fields(F& f, V& select) {
    f.defaulted("pfs", select.pfs);
    f.defaulted("drivers", select.drivers);
    f.defaulted("devices", select.devices);
    f.defaulted("numa_nodes", select.numa_nodes);
    f.defaulted("link_layers", select.link_layers);
    f.defaulted("pcie_roots", select.pcie_roots);
    f.defaulted("labels", select.labels);
    f.maybe("rdma", select.rdma);
}

void check(JsonReader& reader, PoolSelectors const& select) {
    auto const at_most = [&](char const* name, std::size_t count) {
        if (count > selected_values_max)
            reader.complain(name, fmt::format("must be at most {}", selected_values_max));
    };
    at_most("pfs", select.pfs.size());
    at_most("drivers", select.drivers.size());
    at_most("devices", select.devices.size());
    at_most("numa_nodes", select.numa_nodes.size());
    at_most("link_layers", select.link_layers.size());
    at_most("pcie_roots", select.pcie_roots.size());
    at_most("labels", select.labels.size());
}

template <class F, Of<PoolDefaults> V>
void fields(F& f, V& defaults) {
    f.maybe("network", defaults.network);
    f.defaulted("settings", defaults.settings);
    f.maybe("verify", defaults.verify);
    f.maybe("verify_profile", defaults.verify_profile);
}

// A pool's VFs can't all have one MAC. A VLAN comes from the network.
void check(JsonReader& reader, PoolDefaults const& defaults) {
    if (defaults.network && !can_be_a_networks(*defaults.network))
        reader.complain("network", rule_of_network_names);
    auto const& settings = defaults.settings;
    for (auto const& [given, name] : {std::pair{settings.mac.has_value(), "settings/mac"},
                                      {settings.node_guid.has_value(), "settings/node_guid"},
                                      {settings.port_guid.has_value(), "settings/port_guid"}})
        if (given) reader.complain(name, "identifies one VF, so it can't be a pool's default");
}

template <class F, Of<Pool> V>
void fields(F& f, V& pool) {
    f.own_name(pool.name);
    f.defaulted("select", pool.select);
    f.defaulted("defaults", pool.defaults);
    f.maybe("from_metadata", pool.from_metadata);
}

void check(JsonReader& reader, Pool const& pool) {
    if (!pool.name.empty() && !can_be_a_networks(pool.name))
        reader.complain("name", rule_of_network_names);
}

template struct Json<Pool>;

}  // namespace vfmgr
