// SPDX-License-Identifier: Apache-2.0
// Selects the responder of a run: this host's, or another host's that the run names. The guest
// notices no difference. Owned by the guest plane, called on its threads. Calls to another host
// block, so their number at a time is limited.
#pragma once

#include <mutex>
#include <optional>

#include "api/os/handle.hpp"
#include "api/types/guest.hpp"
#include "vfmgr/proof/host/responder.hpp"

namespace vfmgr {

// What one run may do, and where; without `remote`, on this host.
struct Permitted {
    verify::SessionPermit permit;
    std::optional<ResponderTarget> remote;
    bool operator==(Permitted const&) const = default;
};

class Responders {
  public:
    // At most `remote_calls_max` calls at once; further ones wait for their turn, so that other VMs
    // are still answered while another host hangs.
    Responders(verify::Responder& own, std::size_t remote_calls_max)
        : own_(own), remote_calls_max_(remote_calls_max) {}

    [[nodiscard]] Result<OrTurn<SessionOffer>> open(Permitted const& run,
                                                    SessionRequest const& request);
    [[nodiscard]] Result<OrTurn<StreamOffer>> open_stream(Permitted const& run,
                                                          std::string const& session,
                                                          StreamRequest const& request);
    void close_stream(Permitted const& run, std::string const& session, std::string const& stream);
    // Returns the verdict, without times.
    [[nodiscard]] Result<Verification> close(Permitted const& run, std::string const& session,
                                             GuestReport const& report);
    void drop(Permitted const& run, std::string const& session);

  private:
    // A call to another host counts as long as the result is held.
    [[nodiscard]] Result<Held> begin_call();

    verify::Responder& own_;
    std::size_t const remote_calls_max_;
    std::mutex mutex_;
    std::size_t remote_calls_ = 0;  // guarded by mutex_
};

}  // namespace vfmgr
