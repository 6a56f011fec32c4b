// SPDX-License-Identifier: Apache-2.0
// rping's server (vfmgr/rdma/RDMA.md#rping): accepts connections by RDMA CM on one
// interface, from one guest only. The client sends the location of its ping; the server reads the
// ping, and writes it to the location that the client sends next. One thread accepts the
// connections, and each connection has a thread too; counters from any.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "api/os/descriptor.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"
#include "vfmgr/proof/interop/share.hpp"

namespace vfmgr::interop {

class RpingConversation;

class CmServer {
  public:
    // Fails with unsupported without the kernel's module rdma_ucm, or without an RDMA device for
    // the interface's address.
    [[nodiscard]] static Result<std::unique_ptr<CmServer>> start(Terms const& terms);
    ~CmServer();
    CmServer(CmServer const&) = delete;
    CmServer& operator=(CmServer const&) = delete;

    // The terms' port, or if that is 0, the one that RDMA CM chose.
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
    std::list<std::unique_ptr<RpingConversation>> conversations_;  // used only by its thread
    std::thread thread_;
};

}  // namespace vfmgr::interop
