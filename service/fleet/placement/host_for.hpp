// SPDX-License-Identifier: Apache-2.0
// Which host a request for attachments is for, when it says so by a VM, by a reservation or by an
// attachment's id. From what hosts have reported; pure, any thread.
#pragma once

#include <string>
#include <vector>

#include "service/auth/authenticate.hpp"
#include "service/fleet/inventory/inventory.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

// What a body says: {"host": …, "vm": …, "reservation": …}, or a list of such attachments.
struct AttachPlaces {
    std::string host;                       // empty: not named
    std::vector<std::string> vms;           // names or UUIDs, each once
    std::vector<std::string> reservations;  // each once
    std::string body;                       // for the host: without `host`
};
// Fails with invalid_request if the body is no object; whatever else is wrong, the host says.
[[nodiscard]] Result<AttachPlaces> read_attach_places(std::string_view body);

// Fails with not_found if no host fits; with conflict if several do, which it names, or if nothing
// new goes to the one that does.
[[nodiscard]] Result<std::string> host_for(AttachPlaces const& places, InventoryView const& view,
                                           State const& state, Principal const& who);
// The host that has the attachment.
[[nodiscard]] Result<std::string> host_of_attachment(std::string const& id,
                                                     InventoryView const& view);

}  // namespace vfmgr::fleet
