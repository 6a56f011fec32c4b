// SPDX-License-Identifier: Apache-2.0
// rping's server (verification.md, 5.1): a set-up by RDMA CM on one leg, for one guest and nobody
// else. The client says where its ping is, the server reads it, and writes it back to where the
// client says then. A thread of its own takes the connections, each of which has one, too; counters
// from any.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "api/types/file_descriptor.hpp"
#include "guest-tools/stock/cm_set_up.hpp"
#include "guest-tools/stock/terms.hpp"

namespace vfmgr::stock {

class RpingConversation;

class CmServer {
  public:
    // unsupported without the kernel's module rdma_ucm, or an RDMA device for the leg's address.
    [[nodiscard]] static Result<std::unique_ptr<CmServer>> start(Terms const& terms);
    ~CmServer();
    CmServer(CmServer const&) = delete;
    CmServer& operator=(CmServer const&) = delete;

    // The terms', or the one that RDMA CM chose when that is 0.
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] Served served() const;

  private:
    CmServer(Terms terms, FileDescriptor wake, CmChannel channel, CmId listener);
    void run();
    void take_events();
    void connect_requested(rdma_cm_event const& event);
    void forget_ended();

    Terms const terms_;
    FileDescriptor const wake_;
    CmChannel const channel_;  // outlives its ids
    CmId listener_;
    std::uint16_t const port_;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::uint64_t> served_ = 0, refused_ = 0, pings_ = 0;
    std::list<std::unique_ptr<RpingConversation>> conversations_;  // its thread's
    std::thread thread_;
};

}  // namespace vfmgr::stock
