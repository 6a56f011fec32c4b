// SPDX-License-Identifier: Apache-2.0
// Who belongs to the fleet: how it begins, and how hosts come, are described and go. Decided from
// the state that a replica knows; the transactions are guarded by what was decided from, so a
// replica that knew less than another fails and decides again. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "api/types/fleet_host.hpp"
#include "service/fleet/contact.hpp"
#include "service/fleet/etcd/settle.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

// What the first replica writes. GuardedTransaction by there being no fleet.
[[nodiscard]] GuardedTransaction begin_fleet(FleetRecord const& fleet, std::string const& act);
// Refuses a prefix that another fleet has, and one of a format that this version does not know.
[[nodiscard]] Result<void> check_fleet(State const& state, std::string const& fleet,
                                       std::string const& ca);

// 32 random hex digits, of one transaction alone.
[[nodiscard]] std::string new_act();

// What is asked of a transaction beside what it is about.
struct Request {
    std::string by;   // the principal
    std::string act;  // random
    Time now{};
};

// A new token: what is stored of it.
[[nodiscard]] GuardedTransaction add_join_token(JoinTokenRequest const& request,
                                                JoinToken const& token, Request const& by);
// Takes a token away. Absent: there is none of that id.
[[nodiscard]] std::optional<GuardedTransaction> drop_join_token(State const& state,
                                                                std::string const& id);
// Takes away tokens that have expired, as many as fit one transaction; absent: there are none.
[[nodiscard]] std::optional<GuardedTransaction> drop_expired_tokens(State const& state, Time now);

// The host is of the fleet already, by the same token and with the same key: its answer was lost.
struct HasJoined {};
// Errors: unauthorized (the token), forbidden (it is another host's), conflict (the name).
[[nodiscard]] Result<std::variant<GuardedTransaction, HasJoined>> join(State const& state,
                                                                       JoinRequest const& request,
                                                                       Time now);

// Fails with not_found. Valid as long as the state.
[[nodiscard]] Result<Stored<HostRecord> const*> known_host(State const& state,
                                                           std::string const& name);
// Writes a host's record whole, and only if nobody has written it since it was read.
[[nodiscard]] GuardedTransaction write_host(std::string const& name,
                                            Stored<HostRecord> const& before, HostRecord record,
                                            std::string const& act);
// A change of one host's record. Errors: not_found; conflict for what contradicts it.
[[nodiscard]] Result<GuardedTransaction> patch_host(State const& state, std::string const& name,
                                                    FleetHostPatch const& patch, Request const& by);
[[nodiscard]] Result<GuardedTransaction> fence_host(State const& state, std::string const& name,
                                                    FencedRequest const& request,
                                                    Request const& by);
[[nodiscard]] Result<GuardedTransaction> unfence_host(State const& state, std::string const& name,
                                                      Request const& by);
// A replica has reached a host that was joining.
[[nodiscard]] Result<GuardedTransaction> activate_host(State const& state, std::string const& name,
                                                       std::string const& act);
[[nodiscard]] Result<GuardedTransaction> quarantine_host(State const& state,
                                                         std::string const& name,
                                                         std::string const& reason,
                                                         std::string const& act);
// Marks how far a host has got. Absent: nothing is to be marked, since the host is gone or in
// quarantine, or the mark is there.
[[nodiscard]] std::optional<GuardedTransaction> mark_host(State const& state,
                                                          std::string const& name,
                                                          std::string const& store,
                                                          KnownEvent const& last,
                                                          std::string const& act);
// Marks which generation of identities a host has confirmed. Absent as above, or while the host has
// no mark yet.
[[nodiscard]] std::optional<GuardedTransaction> mark_generation(State const& state,
                                                                std::string const& name,
                                                                std::uint64_t generation,
                                                                std::string const& act);
// Ends a quarantine: the host's mark begins anew from what it reports now.
[[nodiscard]] Result<GuardedTransaction> confirm_host(State const& state, std::string const& name,
                                                      MarkRecord const& as_it_is,
                                                      Request const& by);
// How many blocks and claims of identities are a host's, or are to be given up by it.
[[nodiscard]] std::size_t held_by_host(State const& state, std::string_view host);
// Takes a host out. Refused while it has blocks or claims: it gives them up first, or is fenced.
[[nodiscard]] Result<GuardedTransaction> expel_host(State const& state, std::string const& name);

// What the API shows of a host, as far as etcd knows it.
[[nodiscard]] FleetHost view_of(std::string const& name, HostRecord const& record);

}  // namespace vfmgr::fleet
