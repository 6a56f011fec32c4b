// SPDX-License-Identifier: Apache-2.0
// What both ends of a set-up by RDMA CM share. Only in a process of its own: child.hpp. One thread
// at a time for each id.
#pragma once

#include <rdma/rdma_cma.h>

#include "guest-tools/verify/handles.hpp"
#include "guest-tools/verify/queue_pair.hpp"

namespace vfmgr::stock {

using CmChannel = verify::Handle<rdma_event_channel, rdma_destroy_event_channel>;
using CmId = verify::Handle<rdma_cm_id, rdma_destroy_id>;

// Its events are waited for at its descriptor, which does not block. unsupported without the
// kernel's module rdma_ucm.
[[nodiscard]] Result<CmChannel> make_cm_channel();
[[nodiscard]] Result<CmId> make_cm_id(CmChannel const& channel);

// Of librdmacm's calls, with errno as the cause and what the dictionary of faults knows of it.
[[nodiscard]] Error cm_error(Problem problem, std::string detail, char const* call);

// The queue pair to RTR and RTS: the attributes of the other end, and the sequence numbers, are
// RDMA CM's. On the side that connects after the other's answer, else before its own.
[[nodiscard]] Result<void> make_ready(CmId const& id, verify::QueuePair& pair);
// One read at a time each way, and as many attempts as there can be.
[[nodiscard]] rdma_conn_param parameters_for(verify::QueuePair const& pair);

}  // namespace vfmgr::stock
