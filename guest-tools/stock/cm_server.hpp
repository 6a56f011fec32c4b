// SPDX-License-Identifier: Apache-2.0
// rping's server (verification.md, 5.1): a set-up by RDMA CM on one leg, for one guest and nobody
// else. The client says where its ping is, the server reads it, and writes it back to where the
// client says then. A thread of its own takes the connections, each of which has one, too; counters
// from any.
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "api/types/file_descriptor.hpp"
#include "guest-tools/stock/terms.hpp"
#include "guest-tools/verify/handles.hpp"

namespace vfmgr::stock {

class RpingConversation;

class CmServer {
  public:
    // unsupported without the kernel's module rdma_ucm, or an RDMA device for the leg's address.
    [[nodiscard]] static Result<std::unique_ptr<CmServer>> start(Terms const& terms);
    ~CmServer();
    CmServer(CmServer const&) = delete;
    CmServer& operator=(CmServer const&) = delete;

    [[nodiscard]] Served served() const;

  private:
    using Channel = verify::Handle<rdma_event_channel, rdma_destroy_event_channel>;
    using Id = verify::Handle<rdma_cm_id, rdma_destroy_id>;
    CmServer(Terms terms, FileDescriptor wake, Channel channel, Id listener);
    void run();
    void take_events();
    void connect_requested(rdma_cm_event const& event);
    void forget_ended();

    Terms const terms_;
    FileDescriptor const wake_;
    Channel const channel_;  // outlives its ids
    Id listener_;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::uint64_t> served_ = 0, refused_ = 0;
    std::list<std::unique_ptr<RpingConversation>> conversations_;  // its thread's
    std::thread thread_;
};

}  // namespace vfmgr::stock
