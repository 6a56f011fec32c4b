// SPDX-License-Identifier: Apache-2.0
// A host as far as a fleet's daemon asks it, without an engine: it answers from recorded views, and
// keeps what a fleet gives it. Lists are answered whole, without filters. The io thread's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/fleet.hpp"
#include "tests/fleet/programs/commits.hpp"
#include "tests/fleet/programs/views.hpp"

namespace vfmgr::simulation {

struct Counts {
    std::size_t requests = 0, unchanged = 0, events = 0, streams = 0;
};

class SimulatedHost {
  public:
    // What it refers to outlives it. `authenticated`: it answers only who showed a certificate that
    // was verified.
    SimulatedHost(std::uint32_t number, Views const& views, Commits& commits, Counts& counts,
                  bool authenticated, std::string const& fleet);
    void answer(http::Request request, http::Respond respond);
    // A setting of its first VF changes, or changes back, and its streams tell so: an event as
    // vfmgrd's, whose `detail` ends with "sent at SECONDS", of CLOCK_MONOTONIC.
    void drift();

  private:
    struct Reader;

    [[nodiscard]] http::Response read(http::Request const& request);
    [[nodiscard]] Result<http::Response> document(http::Request const& request);
    [[nodiscard]] Result<http::Response> follow(http::Request const& request);
    [[nodiscard]] Result<http::Response> change(http::Request const& request);
    [[nodiscard]] Result<void> check_fence(http::Request const& request);
    [[nodiscard]] Result<http::Response> reserve(http::Request const& request,
                                                 std::string const& name);
    [[nodiscard]] Result<http::Response> release(std::string const& name);
    [[nodiscard]] Result<http::Response> put_identities(http::Request const& request);
    [[nodiscard]] http::Response with_tag(http::Request const& request, std::string text);

    std::uint32_t const number_;
    Views const& views_;
    Commits& commits_;
    Counts& counts_;
    bool const authenticated_;
    std::vector<VfId> free_;
    std::map<std::string, nlohmann::json> reservations_;  // besides the recorded one
    nlohmann::json identities_;                           // null: as recorded
    std::optional<FleetMembership> membership_;           // absent: it is in no fleet
    std::uint64_t changes_ = 1;                           // of its documents
    std::uint64_t identities_revision_ = 1, fence_ = 0, last_event_ = 0;
    bool drifted_ = false;
    std::deque<http::Frame> recent_;  // the last one is of last_event_
    std::vector<std::weak_ptr<Reader>> readers_;
};

}  // namespace vfmgr::simulation
