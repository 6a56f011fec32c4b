// SPDX-License-Identifier: Apache-2.0
// The streams of the fleet's GET /v1/events. A handle that may be copied. Its work is done on the
// server's io thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/types/time.hpp"
#include "service/event_limits.hpp"
#include "service/fleet/inventory/fleet_event_reader.hpp"

namespace vfmgr::fleet {

class FleetEventStreams {
  public:
    // `io_post` is http::Server's. `clock` outlives the handle.
    FleetEventStreams(EventStreamLimits streams, FleetEventLimits events,
                      std::function<void(std::function<void()>)> io_post, Clock const& clock);

    // Changes the events on the io thread, and wakes the readers: one call for several changes, in
    // the order of the calls. Any thread.
    void change(std::function<void(FleetEvents&)> how) const;
    // Applies to the streams that follow. Any thread.
    void limit(EventStreamLimits const& limits) const;
    // Answers GET /v1/events. `viewer`: the caller's tenant; null: of none. On the io thread.
    [[nodiscard]] Result<http::Response> open(http::Request const& request,
                                              std::string const& principal,
                                              std::shared_ptr<Tenant const> viewer) const;

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace vfmgr::fleet
