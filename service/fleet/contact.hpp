// SPDX-License-Identifier: Apache-2.0
// Whether a host is the one that the fleet knows, and as far as it was: a store that was restored
// behind the fleet's back has forgotten what it handed out. Such a host is quarantined, not merged.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "service/fleet/records.hpp"

namespace vfmgr::fleet {

// What a host says of itself when a replica reaches it: its GET /v1/fleet.
struct Contact {
    std::string fleet;                  // UUID of the fleet that it is in; empty: none
    std::string host;                   // its name there
    std::string store;                  // id of its store
    std::uint64_t last_event = 0;       // the highest number that it gave to an event
    std::uint64_t fence = 0;            // the highest that it has had; it refuses lower ones
    std::optional<Time> restored_at{};  // a backup was restored, and nobody has confirmed it
    bool operator==(Contact const&) const = default;
};

// Reads the host's answer; members that are not known here are ignored.
[[nodiscard]] Result<Contact> read_contact(std::string_view body);

// Returns why the host can't be what it was, in a sentence for an admin; absent: it can. `mark` is
// what the fleet keeps in etcd; null: this is the first contact. `seen` is the latest event that
// this replica has had from it; 0: none.
[[nodiscard]] std::optional<std::string> contradiction(std::string_view fleet,
                                                       std::string_view name,
                                                       MarkRecord const* mark, std::uint64_t seen,
                                                       Contact const& contact);

// What tells an event from another one of the same number: when it was and what it is about, of the
// data that the host sent. Empty: it is no event that is known here.
[[nodiscard]] std::string told_apart_by(std::string_view event);
// The latest event of a host that is known.
struct KnownEvent {
    std::uint64_t number = 0;  // 0: none is
    std::string is{};          // as told_apart_by() says
    bool operator==(KnownEvent const&) const = default;
};

// Whether the mark is to be written: it is absent, or old and the host has gone on.
[[nodiscard]] bool mark_is_due(MarkRecord const* mark, KnownEvent const& last, Time written_at,
                               Time now);

}  // namespace vfmgr::fleet
