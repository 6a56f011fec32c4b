// SPDX-License-Identifier: Apache-2.0
// The firmware settings of ConnectX cards: current, and after their reset.
#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "vfmgr/plan/firmware.hpp"

namespace vfmgr {
namespace {

using Cards = FirmwareQuery::Shared;

// Adds to the card's settings: what it waits for, its users, and earlier attempts.
nlohmann::json firmware_json(Snapshot const& now, FirmwareCard const& card) {
    nlohmann::json out = card;
    auto const pending = pending_of(*now.desired, card);
    out["pending"] = pending ? nlohmann::json(std::string(enum_name(*pending))) : nullptr;
    out["in_use"] = card_uses(*now.host, *now.desired, card);
    out["tries"] = nullptr;
    auto const tries = now.desired->firmware_tries.find(card.pci);
    if (tries != now.desired->firmware_tries.end()) out["tries"] = tries->second;
    return out;
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

Result<FirmwareCard> card_of(Engine const& engine, Result<std::vector<FirmwareCard>> const& cards,
                             PciAddress const& pci) {
    if (!cards) return fail(cards.error());
    for (auto const& card : *cards)
        if (std::ranges::find(card.functions, pci) != card.functions.end()) return card;
    return fail(no_card(engine.snapshot(), pci));
}

void list_firmware(Engine& engine, FirmwareQuery& query, Call const& call, http::Respond respond) {
    query.ask([&engine, call, respond = std::move(respond)](Cards const& cards) {
        if (!*cards) return respond(refusal(call, cards->error()));
        auto const now = engine.snapshot();
        auto items = nlohmann::json::array();
        for (auto const& card : **cards) items.push_back(firmware_json(now, card));
        respond(list_response(std::move(items)));
    });
}

void show_firmware(Engine& engine, FirmwareQuery& query, Call const& call, http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    query.ask([&engine, call, pci = *pci, respond = std::move(respond)](Cards const& cards) {
        auto const card = card_of(engine, *cards, pci);
        respond(card ? json_response(200, firmware_json(engine.snapshot(), *card))
                     : refusal(call, card.error()));
    });
}

void change_firmware(Engine& engine, FirmwareQuery& query, Call const& call,
                     http::Respond respond) {
    auto const pci = pf_id(call);
    if (!pci) return respond(refusal(call, pci.error()));
    auto const requested = from_json_text<FirmwareRequest>(call.request.body);
    if (!requested) return respond(refusal(call, requested.error()));
    query.ask([&engine, call, pci = *pci, settings = requested->settings,
               respond = std::move(respond)](Cards const& cards) {
        auto const card = card_of(engine, *cards, pci);
        if (!card) return respond(refusal(call, card.error()));
        submit(engine, call, ChangeFirmware{settings, *card}, respond, [&engine, card = *card] {
            return json_response(200, firmware_json(engine.snapshot(), card));
        });
    });
}

}  // namespace

std::vector<Route> firmware_routes(Engine& engine, FirmwareQuery& query) {
    return {
        {"GET", "/v1/host/firmware", Role::viewer,
         [&engine, &query](Call const& call, http::Respond respond) {
             list_firmware(engine, query, call, std::move(respond));
         }},
        {"GET", "/v1/pfs/{pci}/firmware", Role::viewer,
         [&engine, &query](Call const& call, http::Respond respond) {
             show_firmware(engine, query, call, std::move(respond));
         }},
        {"PUT",
         "/v1/pfs/{pci}/firmware",
         Role::admin,
         [&engine, &query](Call const& call, http::Respond respond) {
             change_firmware(engine, query, call, std::move(respond));
         },
         {"dry_run"}},
    };
}

}  // namespace vfmgr
