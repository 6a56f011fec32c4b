// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"
#include "service/fleet/inventory/fleet_event_reader.hpp"

namespace vfmgr::fleet {
namespace {

Result<std::vector<EventKind>> kinds_in(std::string_view text) {
    std::vector<EventKind> kinds;
    while (true) {
        auto const end = std::min(text.find(','), text.size());
        auto const kind = enum_value<EventKind>(text.substr(0, end));
        if (!kind)
            return fail(Problem::invalid_request,
                        fmt::format("there is no kind of event {}", quoted(text.substr(0, end))),
                        "the kinds are: " + enum_choices<EventKind>());
        kinds.push_back(*kind);
        if (end == text.size()) return kinds;
        text.remove_prefix(end + 1);
    }
}

}  // namespace

bool FleetEventFilter::matches(HostEvent const& event) const {
    auto const passes = [](auto const& wanted, auto const& actual) {
        return !wanted || actual == wanted;
    };
    return passes(pf, event.pf) && passes(attachment, event.attachment) &&
           (passes(vm, event.vm) || passes(vm, event.vm_uuid)) && passes(network, event.network) &&
           passes(pool, event.pool) && passes(reservation, event.reservation) &&
           passes(tenant, event.tenant) &&
           (kinds.empty() || (event.kind && std::ranges::find(kinds, *event.kind) != kinds.end()));
}

std::vector<std::string> event_filter_parameters() {
    auto names = host_filter_parameters();
    names.insert(names.end(), {"after", "pf", "vm", "attachment", "network", "pool", "reservation",
                               "tenant", "kind"});
    return names;
}

Result<FleetEventFilter> read_event_filter(http::Request const& request) {
    FleetEventFilter filter;
    VFMGR_TRY(filter.of, read_host_filter(request));
    for (auto const& [name, value] : request.query) {
        if (name == "pf") {
            VFMGR_TRY(filter.pf, PciAddress::parse(value));
        } else if (name == "vm") {
            filter.vm = value;
        } else if (name == "attachment") {
            filter.attachment = value;
        } else if (name == "network") {
            filter.network = value;
        } else if (name == "pool") {
            filter.pool = value;
        } else if (name == "reservation") {
            filter.reservation = value;
        } else if (name == "tenant") {
            filter.tenant = value;
        } else if (name == "kind") {
            VFMGR_TRY(filter.kinds, kinds_in(value));
        }
    }
    return filter;
}

}  // namespace vfmgr::fleet
