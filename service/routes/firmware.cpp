// SPDX-License-Identifier: Apache-2.0
// The firmware settings of ConnectX cards: current, and after their reset.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page.hpp"
#include "vfmgr/plan/firmware.hpp"

namespace vfmgr {
namespace {

using Cards = FirmwareQuery::Shared;

FirmwareView view_of(Snapshot const& now, FirmwareCard const& card) {
    FirmwareView view{
        card, pending_of(*now.desired, card), card_uses(*now.host, *now.desired, card), {}};
    auto const tries = now.desired->firmware_tries.find(card.pci);
    if (tries != now.desired->firmware_tries.end()) view.tries = tries->second;
    return view;
}

Error no_card(Snapshot const& now, PciAddress const& pci) {
    if (auto const* pf = find_pf(*now.host, pci))
        return {Problem::unsupported,
                fmt::format("{} ({}, driver {}) is not a ConnectX card: mstconfig does not know "
                            "its firmware",
                            pf->info.ifname, to_string(pci), pf->info.driver),
                "enable SR-IOV in the host's firmware setup, or with the vendor's tool"};
    return {Problem::not_found, fmt::format("there is no ConnectX card at {}", to_string(pci)),
            "GET /v1/host/firmware lists those of this host"};
}

Result<FirmwareCard> card_of(Engine const& engine, Cards const& cards, PciAddress const& pci) {
    if (!*cards) return fail(cards->error());
    for (auto const& card : **cards)
        if (std::ranges::find(card.functions, pci) != card.functions.end()) return card;
    return fail(no_card(engine.snapshot(), pci));
}

Result<http::Response> list_firmware(Engine const& engine, Call const& call, Cards const& cards) {
    if (!*cards) return fail(cards->error());
    auto const now = engine.snapshot();
    auto by_address = **cards;
    std::ranges::sort(by_address, {}, &FirmwareCard::pci);
    return page_of_all(call, by_address, &FirmwareCard::pci,
                       [&](FirmwareCard const& card) { return std::optional(view_of(now, card)); });
}

Result<Query<http::Response>> show_firmware(Engine const& engine, FirmwareQuery& query,
                                            Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    return query.query().then([&engine, pci](Cards const& cards) -> Result<http::Response> {
        VFMGR_TRY(auto const card, card_of(engine, cards, pci));
        return json_response(200, view_of(engine.snapshot(), card));
    });
}

Result<Query<Change>> change_firmware(Engine const& engine, FirmwareQuery& query,
                                      Call const& call) {
    VFMGR_TRY(auto const pci, pf_id(call));
    VFMGR_TRY(auto const requested, from_json_text<FirmwareRequest>(call.request.body));
    return query.query().then(
        [&engine, pci, settings = requested.settings](Cards const& cards) -> Result<Change> {
            VFMGR_TRY(auto const card, card_of(engine, cards, pci));
            return Change{ChangeFirmware{settings, card}, [card](Call const&, Snapshot const& now) {
                              return json_response(200, view_of(now, card));
                          }};
        });
}

}  // namespace

std::vector<Route> firmware_routes(Engine& engine, FirmwareQuery& query) {
    return {
        {"GET", "/v1/host/firmware", Role::viewer,
         [&engine, &query](Call const& call, Snapshot const&) {
             return query.query().then(std::bind_front(list_firmware, std::cref(engine), call));
         },
         list_parameters()},
        {"GET", "/v1/pfs/{pci}/firmware", Role::viewer,
         [&engine, &query](Call const& call, Snapshot const&) {
             return show_firmware(engine, query, call);
         }},
        {"PUT",
         "/v1/pfs/{pci}/firmware",
         Role::admin,
         [&engine, &query](Call const& call) { return change_firmware(engine, query, call); },
         {"dry_run"}},
    };
}

}  // namespace vfmgr
