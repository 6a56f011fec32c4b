// SPDX-License-Identifier: Apache-2.0
// What the scheduler asks of a host for a reservation, and what the host's answer means. Pure; any
// thread.
#pragma once

#include <variant>

#include "api/http/http.hpp"
#include "api/types/reservation.hpp"
#include "service/auth/authenticate.hpp"
#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/records.hpp"

namespace vfmgr::fleet {

// Keeps these VFs, from now on for `spec.seconds`. On behalf of whoever wants them.
[[nodiscard]] http::Request keep_request(ReservationRecord const& record,
                                         std::vector<VfsOfPf> const& pfs, Principal const& who,
                                         Revision fence);
// Gives up what the reservation still keeps.
[[nodiscard]] http::Request drop_request(std::string const& name, Principal const& who,
                                         Revision fence);
// Asks what it keeps, as the replica itself. The host learns the fence first: no earlier scheduler
// gets anything there afterwards.
[[nodiscard]] http::Request show_request(std::string const& name, Revision fence);

// unknown: the answer was lost, or says that the host does not know. It is asked again.
struct Unknown {
    Error why;
};
// The host has not done it, and does not do it.
struct HostRefusal {
    Error why;
};
// Another scheduler was there.
struct Outdated {
    Error why;
};
using HostWord = std::variant<Reservation, HostRefusal, Outdated, Unknown>;

// Of keep_request() and show_request().
[[nodiscard]] HostWord word_of(Result<http::Response> const& answer);
// Of drop_request(): absent if it is gone, or was never there.
[[nodiscard]] std::optional<std::variant<HostRefusal, Outdated, Unknown>> trouble_of(
    Result<http::Response> const& answer);

}  // namespace vfmgr::fleet
