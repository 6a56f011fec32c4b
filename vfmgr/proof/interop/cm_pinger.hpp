// SPDX-License-Identifier: Apache-2.0
// What both ends of an RDMA CM connection share. Only in a process of its own: child.hpp. One
// thread at a time for each id.
#pragma once

#include <rdma/rdma_cma.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/proof/reachability.hpp"
#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::interop {

using CmChannel = Handle<rdma_event_channel, rdma_destroy_event_channel>;
using CmId = Handle<rdma_cm_id, rdma_destroy_id>;

// Events are awaited at the channel's descriptor, which is non-blocking. Fails with unsupported
// without the kernel's module rdma_ucm.
[[nodiscard]] Result<CmChannel> make_cm_channel();
[[nodiscard]] Result<CmId> make_cm_id(CmChannel const& channel);

// The error of a librdmacm call, with errno as the cause and the fault dictionary's entry for it.
[[nodiscard]] Error cm_error(Problem problem, std::string detail, char const* call);

// Moves the queue pair to RTR and RTS. RDMA CM supplies the peer's attributes and the sequence
// numbers. The connecting side calls it after the peer's answer, the accepting side before its own.
[[nodiscard]] Result<void> make_ready(CmId const& id, verify::QueuePair& pair);
// One read at a time in each direction, and the maximum of retries.
[[nodiscard]] rdma_conn_param parameters_for(verify::QueuePair const& pair);

// What RDMA CM chose for an address: on InfiniBand the port below IPoIB's interface.
struct CmChoice {
    std::string_view device;
    ibv_gid gid{};
};
// Fails with conflict unless that is the VF's device and GID.
[[nodiscard]] Result<void> check_choice(verify::Endpoint const& own, CmChoice const& choice);

// Words of a child's command line for what only InfiniBand has; "-": absent.
[[nodiscard]] std::string word_of(std::optional<Guid> const& guid);
[[nodiscard]] std::string word_of(std::optional<std::uint16_t> const& pkey);
// Returns whether it is such a word.
[[nodiscard]] bool read_word(std::string const& word, std::optional<Guid>& guid);
[[nodiscard]] bool read_word(std::string const& word, std::optional<std::uint16_t>& pkey);

// The host's end of cm_ping: rping's server in a process of its own, on a port that RDMA CM
// chooses, to avoid conflicts with other programs and with interop clients on the same interface.
// Any thread.

// For Responder::start(). `program` is the command that runs serve_rping().
[[nodiscard]] verify::OpenCmStream cm_streams(std::vector<std::string> program);

// The VM's end of cm_ping: rping's client in a process of its own (child.hpp explains why). Any
// thread.

// For verify::cm_ping_by(). `program` is the command that runs ping_by_cm(); the options are
// appended as further words.
[[nodiscard]] verify::CmPinger cm_pinger(std::vector<std::string> program);

// Runs in the child: pings as the words request, and reports the result to the parent. Returns the
// exit status.
[[nodiscard]] int ping_by_cm(std::vector<std::string> const& words);

}  // namespace vfmgr::interop
