// SPDX-License-Identifier: Apache-2.0
// Accepts TCP connections from one guest only, on the interface that leads to it. A slow client
// does not lock others out: when there are too many, the oldest that has not begun its test is
// dropped. A thread of its own; counters from any.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "vfmgr/proof/interop/share.hpp"
#include "vfmgr/proof/interop/tcp_stream.hpp"

namespace vfmgr::interop {

class TcpServer {
  public:
    [[nodiscard]] static Result<std::unique_ptr<TcpServer>> start(Terms const& terms,
                                                                  Shares& shares);
    ~TcpServer();
    TcpServer(TcpServer const&) = delete;
    TcpServer& operator=(TcpServer const&) = delete;

    [[nodiscard]] Served served() const;
    [[nodiscard]] std::uint16_t port() const { return port_of(listener_); }

  private:
    class Conversation;
    TcpServer(Terms terms, Shares& shares, FileDescriptor listener, FileDescriptor wake);
    void run();
    void take();
    void serve(FileDescriptor socket, bool welcome);
    void turn_away_without_descriptors();
    void make_room();
    [[nodiscard]] Result<void> begin_test();
    void end(bool tested);

    Terms const terms_;
    Shares& shares_;
    FileDescriptor const listener_, wake_;
    FileDescriptor spare_;  // to turn away a client when no descriptor is left
    std::atomic<bool> stopping_ = false;
    std::list<std::unique_ptr<Conversation>> conversations_;  // its thread's; oldest first
    mutable std::mutex mutex_;                                // guards what follows
    Served served_;
    std::size_t testing_ = 0;
    std::thread thread_;
};

}  // namespace vfmgr::interop
