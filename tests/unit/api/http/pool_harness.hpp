// SPDX-License-Identifier: Apache-2.0
// A server with many TLS listeners, and answers that a test waits for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "api/http/client_pool.hpp"
#include "tests/unit/api/http/tls_harness.hpp"

namespace vfmgr::http {

// Each listener is a target of its own.
struct ManyServers {
    explicit ManyServers(std::size_t count, Handler handler = echo, Limits limits = {})
        : server(limits) {
        EXPECT_TRUE(make_self_signed(certificate, key, {"localhost", "127.0.0.1"}));
        auto const pin = public_key_of(certificate).value();
        for (std::size_t i = 0; i < count; ++i) {
            targets.push_back({.host = "127.0.0.1", .port = test::free_port(), .public_key = pin});
            auto const listening = server.listen(TlsListen{.address = "127.0.0.1",
                                                           .port = targets.back().port,
                                                           .certificate_file = certificate,
                                                           .key_file = key},
                                                 handler);
            EXPECT_TRUE(listening) << listening.error().detail;
        }
        server.start();
    }

    Folder folder;
    std::string certificate = folder.file("cert.pem");
    std::string key = folder.file("key.pem");
    std::vector<TlsTarget> targets;
    Server server;
};

// Takes answers on the pool's thread.
class Answers {
  public:
    [[nodiscard]] ClientPool::Done taker() {
        return [this](Result<Response> answer) {
            std::lock_guard const lock(mutex_);
            all_.push_back(std::move(answer));
            changed_.notify_all();
        };
    }
    // Waits until there are so many.
    [[nodiscard]] std::vector<Result<Response>> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(
            changed_.wait_for(lock, std::chrono::seconds(60), [&] { return all_.size() >= count; }))
            << all_.size() << " of " << count;
        return all_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Result<Response>> all_;
};

// Waits for what a pool counts, as nothing announces it.
inline bool counts_become(ClientPool const& pool, std::function<bool(PoolCounts)> const& right) {
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!right(pool.counts())) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::yield();
    }
    return true;
}

// Waits until a number no longer grows while `round_trip` succeeds many times: by the same threads
// that would make it grow.
inline std::size_t settled(std::atomic<std::size_t> const& number,
                           std::function<bool()> const& round_trip) {
    constexpr int enough = 20;
    std::size_t last = 0;
    for (int quiet = 0; quiet < enough;) {
        EXPECT_TRUE(round_trip());
        quiet = last == number ? quiet + 1 : 0;
        last = number;
    }
    return last;
}

inline std::string outcome(Result<Response> const& answer) {
    if (answer) return std::to_string(answer->status) + " " + answer->body;
    return std::string(code(answer.error().problem)) + ": " + answer.error().detail;
}

}  // namespace vfmgr::http
