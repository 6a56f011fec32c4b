// SPDX-License-Identifier: Apache-2.0
// Requests to many servers over TLS, on connections that are kept, and streams from them. All
// callbacks run on the pool's one io thread and must not block. The owner creates and destroys a
// pool, and no callback may; any thread calls the rest.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/http.hpp"

namespace vfmgr::http {

struct PoolSettings {
    // PEM: what the pool shows of itself to servers for which a target names no other. Read again
    // when they change, as a target's CA file is; connections with the former ones then end with
    // what they carry. While new files can't be used, the former ones are.
    std::string certificate_file{};
    std::string key_file{};
    std::size_t connections_per_target_max = 8;
    std::size_t connections_max = 4096;  // of all targets, without streams
    std::size_t streams_max = 16384;
    // Requests that wait for a connection. More are unavailable.
    std::size_t waiting_per_target_max = 256;
    // How long a connection is kept unused: less than servers wait (Limits::idle_seconds_max).
    std::chrono::milliseconds idle_max{30'000};
};

struct PoolCounts {
    std::size_t connections = 0;  // open or opening, without streams
    std::size_t idle = 0;         // of them: kept for a request to come
    std::size_t streams = 0;
    std::size_t waiting = 0;  // requests without a connection
    std::size_t opened = 0;   // connections and streams that were begun so far
};

// A stream that is followed. When it is destroyed, the stream ends, and none of its callbacks is
// called or still runs: do not hold a lock that they take. A callback may destroy it, and may call
// what it offers.
class Followed {
  public:
    Followed() = default;
    ~Followed();
    Followed(Followed&&) noexcept = default;
    Followed& operator=(Followed&& other) noexcept;
    // Stops the reading: the server then can send no more than the kernel's buffers take, and may
    // end the stream (Limits::read_seconds_max). Called by `take`, nothing more is taken; by
    // another thread, one part more may be.
    void pause() const;
    void resume() const;

    struct Following;  // internal

  private:
    friend class ClientPool;
    explicit Followed(std::shared_ptr<Following> following) : following_(std::move(following)) {}
    void end();
    std::shared_ptr<Following> following_;
};

// What happens to a stream; `begun` and `ended` may be empty.
struct StreamCalls {
    std::function<void(std::string_view part)> take{};
    // Once: the server has ended it; or it failed; or the answer was not 2xx, and is whole.
    std::function<void(Result<Response>)> ended{};
    // Once, before the first part: the answer's status and headers, 2xx.
    std::function<void(Response)> begun{};
};

class ClientPool {
  public:
    // Called once, on the io thread.
    using Done = std::function<void(Result<Response>)>;

    explicit ClientPool(PoolSettings settings = {}, OnBug on_bug = [](std::string const&) {});
    ~ClientPool();
    ClientPool(ClientPool const&) = delete;
    ClientPool& operator=(ClientPool const&) = delete;

    // Errors: unavailable (it was not carried out, or reads only), timed_out (no answer, and for
    // what changes something: whether it was carried out is not known), invalid_request,
    // limit_exceeded (the answer is longer than a Client takes). If the server has closed a kept
    // connection, the request is sent once more, on a fresh one: a GET, HEAD, PUT or DELETE; any
    // other only if the server can't have read any of it. After stop(), `done` is not called.
    void send(TlsTarget const& target, Request const& request, std::chrono::milliseconds timeout,
              Done done);
    // Waits for the answer. Not for the io thread.
    [[nodiscard]] Result<Response> send(TlsTarget const& target, Request const& request,
                                        std::chrono::milliseconds timeout);
    // Follows a stream on a connection of its own. timed_out: nothing came for `silence_max`.
    [[nodiscard]] Followed follow(TlsTarget const& target, Request const& request,
                                  std::chrono::seconds silence_max, StreamCalls calls);
    // Ends everything with unavailable, and returns when the last callback has. Requests that are
    // sent after that are dropped.
    void stop();
    [[nodiscard]] PoolCounts counts() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vfmgr::http
