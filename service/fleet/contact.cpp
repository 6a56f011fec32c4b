// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/contact.hpp"

#include <fmt/format.h>

#include "api/types/fleet.hpp"
#include "api/types/json.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::chrono::seconds mark_every{60};

}  // namespace

Result<Contact> read_contact(std::string_view body) {
    VFMGR_TRY(auto const document, parse_json(body));
    VFMGR_TRY(auto const view, from_json_document<FleetView>(document, UnknownKeys::ignored));
    Contact contact;
    if (view.membership) {
        contact.fleet = view.membership->fleet;
        contact.host = view.membership->host;
        contact.fence = view.membership->fence;
    }
    contact.store = view.store;
    contact.last_event = view.last_event;
    contact.restored_at = view.restored_at;
    return contact;
}

std::optional<std::string> contradiction(std::string_view fleet, std::string_view name,
                                         MarkRecord const* mark, std::uint64_t seen,
                                         Contact const& contact) {
    if (contact.fleet.empty())
        return "it is in no fleet: somebody ran vfctl fleet leave there, or its store is another";
    if (contact.fleet != fleet)
        return fmt::format("it is in fleet {}, and not in this one", contact.fleet);
    if (contact.host != name)
        return fmt::format("it takes itself for {}: another host answers at its address",
                           contact.host);
    if (contact.restored_at)
        return fmt::format("its store was restored from a backup at {}",
                           to_rfc3339(*contact.restored_at));
    if (contact.last_event < seen)
        return fmt::format(
            "its latest event is {}, and it has sent {} before: its store is older "
            "than it was",
            contact.last_event, seen);
    if (!mark) return std::nullopt;
    if (contact.store != mark->store)
        return fmt::format("its store is another one ({} instead of {})", contact.store,
                           mark->store);
    if (contact.last_event < mark->event)
        return fmt::format(
            "its latest event is {}, and the fleet knows {}: its store is older "
            "than it was",
            contact.last_event, mark->event);
    return std::nullopt;
}

std::string told_apart_by(std::string_view event) {
    auto const document = parse_json(event);
    if (!document || !document->is_object()) return {};
    auto const text = [&](char const* key) {
        auto const found = document->find(key);
        return found != document->end() && found->is_string() ? found->get<std::string>()
                                                              : std::string();
    };
    auto const at = text("at");
    return at.empty() ? std::string() : at + " " + text("kind");
}

bool mark_is_due(MarkRecord const* mark, KnownEvent const& last, Time written_at, Time now) {
    if (last.number == 0) return false;
    if (!mark) return true;
    return last.number > mark->event && now - written_at >= mark_every;
}

}  // namespace vfmgr::fleet
