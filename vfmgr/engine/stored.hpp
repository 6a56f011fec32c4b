// SPDX-License-Identifier: Apache-2.0
// Commands that change only what is stored: networks, pools, tenants, identities, the fleet,
// reservations. They need no operation. On the control thread.
#pragma once

#include "vfmgr/engine/command.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {

struct Stored {
    Plan plan;
    std::uint64_t revision = 0;    // before the change; 0: there was none
    std::optional<Batch> batch{};  // absent: nothing changes
};

// Judges a command, and returns what it stores.
struct Storing {
    Control::State& state;
    HostView const& host;
    Intent const& intent;
    Time now;

    Result<Stored> operator()(PutNetwork const& command) const;
    Result<Stored> operator()(RemoveNetwork const& command) const;
    Result<Stored> operator()(PutPool const& command) const;
    Result<Stored> operator()(RemovePool const& command) const;
    Result<Stored> operator()(PutTenant const& command) const;
    Result<Stored> operator()(RemoveTenant const& command) const;
    Result<Stored> operator()(PutIdentities const& command) const;
    Result<Stored> operator()(JoinFleet const& command) const;
    Result<Stored> operator()(LeaveFleet const& command) const;
    Result<Stored> operator()(ConfirmRestored const& command) const;
    Result<Stored> operator()(Reserve const& command) const;
    Result<Stored> operator()(Release const& command) const;
};

// Ends reservations that have expired, and takes VFs out of them that an attachment has got. If the
// store can't be written, the next command finds the same.
void tidy_reservations(Control::State& state, Time now);

}  // namespace vfmgr
