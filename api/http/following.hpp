// SPDX-License-Identifier: Apache-2.0
// Streams that a ClientPool follows, each on a connection of its own. Internal to api/http. Lives
// on the io thread; a Following is shared with the handle that another thread holds.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "api/http/client_pool.hpp"
#include "api/http/mailbox.hpp"
#include "api/http/outbound.hpp"
#include "api/http/resolver.hpp"
#include "api/http/tls_contexts.hpp"

namespace vfmgr::http {

class Streams {
  public:
    using Stream = std::shared_ptr<Followed::Following>;
    Streams(boost::asio::io_context& io, PoolSettings const& settings, Resolver& resolver,
            TlsContexts& contexts)
        : io_(io), settings_(settings), resolver_(resolver), contexts_(contexts) {}
    Streams(Streams const&) = delete;
    Streams& operator=(Streams const&) = delete;

    void begin(Stream const& stream);
    void refuse(Stream const& stream, Error error) { finish(stream, fail(std::move(error))); }
    void end(Stream const& stream);
    // Reads on, or not, as the handle says.
    void apply_pause(Stream const& stream);
    void stop();
    struct Numbers {  // any thread reads them
        std::atomic<std::size_t> streams = 0, opened = 0;
    };
    [[nodiscard]] Numbers const& numbers() const { return numbers_; }

  private:
    void ask(Stream const& stream);
    void arm(Stream const& stream);
    void finish(Stream const& stream, Result<Response> result);
    void forget(Stream const& stream);

    boost::asio::io_context& io_;
    PoolSettings const& settings_;
    Resolver& resolver_;
    TlsContexts& contexts_;
    std::set<Stream> followed_;
    Numbers numbers_;
    bool stopped_ = false;
};

struct Followed::Following {
    Following(Streams& all, std::shared_ptr<Mailbox> post)
        : streams(all), mailbox(std::move(post)) {}
    // Calls back, unless the handle is gone; that waits for a call that has begun.
    template <class Call>
    void call(Call call) {
        std::lock_guard const lock(calling);
        if (!over) call();
    }

    Streams& streams;  // for what is posted only: it may be gone
    std::shared_ptr<Mailbox> mailbox;
    std::thread::id io_thread{};
    TlsTarget target{};
    std::shared_ptr<std::string const> text{};
    std::chrono::seconds silence_max{};
    StreamCalls calls{};
    std::mutex calling;
    std::atomic<bool> over = false;
    std::atomic<bool> paused = false;
    std::shared_ptr<Outbound> connection{};  // io thread only, as the next
    std::optional<boost::asio::steady_timer> silence{};
};

}  // namespace vfmgr::http
