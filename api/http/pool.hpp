// SPDX-License-Identifier: Apache-2.0
// Divides requests among connections: which one carries a request, which request waits, and what
// follows when a connection ends. Internal to api/http. Lives on the io thread of a ClientPool.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/http/client_pool.hpp"
#include "api/http/outbound.hpp"
#include "api/http/resolver.hpp"
#include "api/http/tls_contexts.hpp"

namespace vfmgr::http {

// A request on its way.
struct Errand {
    Errand(boost::asio::io_context& io, TlsTarget to) : target(std::move(to)), deadline(io) {}
    TlsTarget target;
    std::shared_ptr<std::string const> text{};
    AnswerReader::Of of = AnswerReader::Of::get;
    bool changes = true;      // something on the server: not a GET or HEAD
    bool repeatable = false;  // as HTTP defines it (RFC 9110, 9.2.2)
    bool again = false;       // it was sent before, on a connection that had ended
    Deadline ends{};
    boost::asio::steady_timer deadline;
    ClientPool::Done done{};              // empty: it was called
    std::shared_ptr<Outbound> carrier{};  // null: waits
};

class Pool {
  public:
    Pool(boost::asio::io_context& io, PoolSettings const& settings, Resolver& resolver,
         TlsContexts& contexts)
        : io_(io), settings_(settings), resolver_(resolver), contexts_(contexts) {}
    Pool(Pool const&) = delete;
    Pool& operator=(Pool const&) = delete;

    void take(std::shared_ptr<Errand> const& errand);
    void stop();
    struct Numbers {  // any thread reads them
        std::atomic<std::size_t> connections = 0, idle = 0, waiting = 0, opened = 0;
    };
    [[nodiscard]] Numbers const& numbers() const { return numbers_; }

  private:
    using Idle = std::list<std::pair<TlsTarget, Outbound const*>>;
    struct Kept {
        Kept(boost::asio::io_context& io, std::shared_ptr<Outbound> kept)
            : connection(std::move(kept)), expiry(io) {}
        std::shared_ptr<Outbound> connection;
        boost::asio::steady_timer expiry;
        std::shared_ptr<Errand> carries{};  // null: idle
        bool used = false;                  // it has carried a request before
        Idle::iterator idle_at{};           // only while it is idle
    };
    struct OfTarget {
        std::map<Outbound const*, Kept> connections{};
        std::vector<Outbound const*> idle{};  // the last one became idle last
        std::deque<std::shared_ptr<Errand>> waiting{};
        bool in_line = false;  // for a connection of any target
    };
    using Targets = std::map<TlsTarget, OfTarget>;

    void dispatch(Targets::iterator at);
    [[nodiscard]] std::shared_ptr<Errand> next_of(OfTarget& of);
    [[nodiscard]] Kept* find_idle(Targets::iterator at, std::shared_ptr<SSL_CTX> const& tls);
    [[nodiscard]] bool make_room();
    void open_for(std::shared_ptr<Errand> const& errand, std::shared_ptr<SSL_CTX> tls);
    void carry(Kept& kept, std::shared_ptr<Errand> const& errand);
    void on_open(TlsTarget const& target, Outbound const* connection);
    void on_answer(TlsTarget const& target, Outbound const* connection, Response response);
    void on_failure(TlsTarget const& target, Outbound const* connection, Outbound::Failure failure);
    void on_late(std::shared_ptr<Errand> const& errand);
    void keep(Targets::iterator at, Outbound const* connection);
    std::shared_ptr<Errand> drop(Targets::iterator at, Outbound const* connection);
    void settle(TlsTarget const& target);
    void forget_if_empty(Targets::iterator at);
    void end_idle(OfTarget& of, Kept& kept);
    void give(std::shared_ptr<Errand> const& errand, Result<Response> result);

    boost::asio::io_context& io_;
    PoolSettings const& settings_;
    Resolver& resolver_;
    TlsContexts& contexts_;
    Targets targets_;
    Idle idle_;                   // of all targets; the first for longest
    std::deque<TlsTarget> line_;  // for a connection of any target
    Numbers numbers_;
    bool stopped_ = false;
};

}  // namespace vfmgr::http
