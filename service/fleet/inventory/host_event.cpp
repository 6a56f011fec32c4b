// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/host_event.hpp"

#include "service/fleet/inventory/fields.hpp"

namespace vfmgr::fleet {

Result<HostEvent> read_host_event(std::string_view data) {
    HostEvent event;
    VFMGR_TRY(event.text, compact_json(data, {event_bytes_max}));
    std::string complaint;
    Fields fields(event.text, "", complaint);
    fields.need("number", event.number);
    fields.need_word("kind", event.kind);
    fields.maybe("pf", event.pf);
    fields.maybe("vf", event.vf);
    fields.maybe("attachment", event.attachment);
    fields.maybe("vm", event.vm);
    fields.maybe("vm_uuid", event.vm_uuid);
    fields.maybe("network", event.network);
    fields.maybe("pool", event.pool);
    fields.maybe("reservation", event.reservation);
    fields.maybe("tenant", event.tenant);
    if (fields.has("host")) fields.complain("host", "is the fleet's member");
    if (!complaint.empty())
        return fail(Problem::invalid_request, "an event: " + complaint,
                    "upgrade the host or vfmgr-fleetd");
    return event;
}

}  // namespace vfmgr::fleet
