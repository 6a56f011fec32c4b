// SPDX-License-Identifier: Apache-2.0
// One client of a TCP set-up, from its first byte to its last. Owned by the server; runs on a
// thread of its own; stop() from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/proof/interop/lines.hpp"
#include "vfmgr/proof/interop/share.hpp"
#include "vfmgr/proof/interop/tcp_stream.hpp"

namespace vfmgr::interop {

class Conversation {
  public:
    // Called before the client's test begins; fails with limit_exceeded when enough are running.
    using BeginTest = std::function<Result<void>()>;

    // Called at the very end, on its thread; `tested`: whether the client's test began.
    using OnEnd = std::function<void(bool tested)>;

    // `shares` outlives the conversation; `own` is the share that its connection takes.
    struct Room {
        Shares& shares;
        Shares::Share own;
    };
    Conversation(FileDescriptor socket, Terms terms, Room room, BeginTest begin_test, OnEnd on_end);
    ~Conversation();
    Conversation(Conversation const&) = delete;
    Conversation& operator=(Conversation const&) = delete;

    // Ends it soon; the destructor waits for the end.
    void stop();
    [[nodiscard]] bool testing() const { return testing_; }
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    void run();
    [[nodiscard]] Result<void> serve();
    [[nodiscard]] Result<void> begin_test();
    [[nodiscard]] Result<void> serve_pingpong(std::string begun, Deadline handshake);
    [[nodiscard]] bool wait_stopped(std::chrono::milliseconds time);

    Room const room_;
    TcpStream client_;
    Terms const terms_;
    BeginTest const begin_test_;
    OnEnd const on_end_;
    std::atomic<bool> testing_ = false, ended_ = false;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;  // mutex_
    std::thread thread_;
};

// perftest's server with a TCP set-up (vfmgr/rdma/RDMA.md#perftest): ib_write_bw,
// ib_read_bw, ib_read_lat, and with the right terms ib_send_bw, ib_send_lat, ib_write_lat. The
// server answers each message of the client with one of the same length, until the client
// disconnects. One thread: the conversation's.

class Perftest {
  public:
    // `begin_test` is called before the first queue pair is created.
    Perftest(TcpStream& client, Terms const& terms, Shares& shares,
             std::function<Result<void>()> begin_test)
        : client_(client), terms_(terms), shares_(shares), begin_test_(std::move(begin_test)) {}

    // `version`: the client's first message. Returns when the client has disconnected.
    [[nodiscard]] Result<void> serve(std::string version, Deadline handshake);

  private:
    // A queue pair of the client's, and this server's end of it.
    struct Pair {
        Shares::Share share;
        std::uint32_t client = 0;  // its queue pair number
        std::unique_ptr<verify::HostStream> stream;
        std::string answer;
        bool connected = false;  // the client's end
    };
    [[nodiscard]] Result<void> agree(std::string const& version, Deadline handshake);
    [[nodiscard]] Result<void> answer_line(std::string const& line, Deadline deadline);
    [[nodiscard]] Result<Pair*> pair_of(PerftestLine const& line);
    [[nodiscard]] Result<Pair> open(PerftestLine const& line) const;
    // The memory behind one queue pair, in bytes.
    [[nodiscard]] std::uint32_t bytes_of_a_pair() const;
    [[nodiscard]] Result<void> check_size() const;

    TcpStream& client_;
    Terms const& terms_;
    Shares& shares_;
    std::function<Result<void>()> begin_test_;
    std::uint32_t page_bytes_ = 0;   // of the client's memory
    std::uint32_t path_mtu_ = 1024;  // bytes, for both ends
    std::vector<Pair> pairs_;
};

}  // namespace vfmgr::interop
