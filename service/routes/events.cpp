// SPDX-License-Identifier: Apache-2.0
// The stream of events.
#include <fmt/format.h>

#include <limits>

#include "api/types/text.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

Result<std::uint64_t> event_number(std::string_view name, std::string_view text) {
    if (auto const number = parse_digits(text, {.max = std::numeric_limits<std::uint64_t>::max()}))
        return *number;
    return fail(Problem::invalid_request,
                fmt::format("{} is the number of an event, not {}", name, quoted(text)),
                "send the last id that the stream had, or leave it out to begin now");
}

// A client that resumes repeats its whole request, so the header is later than the parameter.
Result<std::optional<std::uint64_t>> resumes_after(Call const& call) {
    auto const& [headers, query] = std::tie(call.request.headers, call.request.query);
    if (auto const last = headers.find("last-event-id"); last != headers.end())
        return event_number("Last-Event-ID", last->second);
    if (auto const after = query.find("after"); after != query.end())
        return event_number("after", after->second);
    return std::nullopt;
}

Result<std::vector<EventKind>> kinds_of(std::string_view text) {
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

Result<EventFilter> filter_of(Call const& call) {
    EventFilter filter;
    for (auto const& [name, value] : call.request.query) {
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
            VFMGR_TRY(filter.kinds, kinds_of(value));
        }
    }
    return filter;
}

Result<http::Response> follow_events(EventStreams const& streams, Call const& call) {
    VFMGR_TRY(auto const after, resumes_after(call));
    VFMGR_TRY(auto filter, filter_of(call));
    filter.viewer = call.who.tenant;
    return streams.open(call, std::move(filter), after);
}

}  // namespace

std::vector<Route> event_routes(EventStreams const& streams) {
    return {
        {"GET",
         "/v1/events",
         Role::viewer,
         [streams](Call const& call, Snapshot const&) { return follow_events(streams, call); },
         {"after", "pf", "vm", "attachment", "network", "pool", "reservation", "tenant", "kind"},
         for_tenants_too}};
}

}  // namespace vfmgr
