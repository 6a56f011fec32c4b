// SPDX-License-Identifier: Apache-2.0
#include "api/http/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "api/http/connecting.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

namespace {

Error too_many_wait(TlsTarget const& target, std::size_t waiting) {
    return {
        Problem::unavailable,
        fmt::format("{} requests to {} already wait for a connection", waiting, describe(target)),
        "try again when some of them were answered"};
}

Error not_asked(TlsTarget const& target) {
    return {Problem::timed_out,
            fmt::format("{} was not asked in time: all connections carried other requests",
                        describe(target)),
            "try again; it was not carried out"};
}

}  // namespace

void Pool::take(std::shared_ptr<Errand> const& errand) {
    if (stopped_) return give(errand, fail(client_stops(errand->target, Sent::no)));
    errand->deadline.expires_at(errand->ends);
    errand->deadline.async_wait([this, errand](ErrorCode cancelled) {
        if (!cancelled) on_late(errand);
    });
    auto const at = targets_.try_emplace(errand->target).first;
    auto& waiting = at->second.waiting;
    waiting.push_back(errand);
    ++numbers_.waiting;
    dispatch(at);
    if (waiting.size() > settings_.waiting_per_target_max) {
        waiting.pop_back();
        --numbers_.waiting;
        give(errand, fail(too_many_wait(errand->target, waiting.size())));
    }
    forget_if_empty(at);
}

// Gives waiting requests a connection, as far as there are any.
void Pool::dispatch(Targets::iterator at) {
    auto& of = at->second;
    while (!of.waiting.empty()) {
        auto tls = contexts_.of(at->first);
        if (!tls) {
            give(next_of(of), fail(std::move(tls).error()));
        } else if (auto* const kept = find_idle(at, *tls)) {
            carry(*kept, next_of(of));
        } else if (of.connections.size() >= settings_.connections_per_target_max) {
            return;
        } else if (make_room()) {
            open_for(next_of(of), std::move(*tls));
        } else {
            if (!std::exchange(of.in_line, true)) line_.push_back(at->first);
            return;
        }
    }
}

std::shared_ptr<Errand> Pool::next_of(OfTarget& of) {
    auto next = std::move(of.waiting.front());
    of.waiting.pop_front();
    --numbers_.waiting;
    return next;
}

// One that was made with former files, or that its server has ended, is none.
Pool::Kept* Pool::find_idle(Targets::iterator at, std::shared_ptr<SSL_CTX> const& tls) {
    auto& of = at->second;
    while (!of.idle.empty()) {
        auto const* const connection = of.idle.back();
        auto& kept = of.connections.at(connection);
        if (kept.connection->tls() != tls || !kept.connection->usable()) {
            drop(at, connection);
            continue;
        }
        end_idle(of, kept);
        return &kept;
    }
    return nullptr;
}

// Ends the connection that was idle for longest, if there are as many as may be.
bool Pool::make_room() {
    if (numbers_.connections < settings_.connections_max) return true;
    if (idle_.empty()) return false;
    auto const [target, connection] = idle_.front();
    auto const at = targets_.find(target);
    drop(at, connection);
    forget_if_empty(at);
    return true;
}

void Pool::open_for(std::shared_ptr<Errand> const& errand, std::shared_ptr<SSL_CTX> tls) {
    auto const connection =
        std::make_shared<Outbound>(io_, resolver_, errand->target, std::move(tls));
    auto const* const key = connection.get();
    auto& kept =
        targets_.at(errand->target).connections.try_emplace(key, io_, connection).first->second;
    ++numbers_.connections;
    ++numbers_.opened;
    kept.carries = errand;
    errand->carrier = connection;
    // Later: it may fail at once.
    asio::post(io_, [this, connection, key, target = errand->target] {
        connection->open([this, target, key] { on_open(target, key); },
                         [this, target, key](Outbound::Failure failure) {
                             on_failure(target, key, std::move(failure));
                         });
    });
}

void Pool::on_open(TlsTarget const& target, Outbound const* connection) {
    auto& kept = targets_.at(target).connections.at(connection);
    carry(kept, kept.carries);
}

void Pool::carry(Kept& kept, std::shared_ptr<Errand> const& errand) {
    kept.expiry.cancel();
    errand->carrier = kept.connection;
    kept.connection->ask({.text = errand->text,
                          .of = errand->of,
                          .if_read = errand->changes ? Sent::maybe : Sent::no,
                          .answered = [this, target = errand->target,
                                       connection = kept.connection.get()](Response response) {
                              on_answer(target, connection, std::move(response));
                          }});
    kept.carries = errand;
}

void Pool::on_answer(TlsTarget const& target, Outbound const* connection, Response response) {
    auto const at = targets_.find(target);
    auto& kept = at->second.connections.at(connection);
    give(std::exchange(kept.carries, nullptr), std::move(response));
    // Others that wait for any connection get one now, however many requests wait for this target.
    if (kept.connection->kept() && line_.empty())
        keep(at, connection);
    else
        drop(at, connection);
    settle(target);
}

void Pool::keep(Targets::iterator at, Outbound const* connection) {
    auto& kept = at->second.connections.at(connection);
    kept.used = true;
    at->second.idle.push_back(connection);
    kept.idle_at = idle_.emplace(idle_.end(), at->first, connection);
    ++numbers_.idle;
    kept.expiry.expires_after(settings_.idle_max);
    kept.expiry.async_wait([this, target = at->first, connection](ErrorCode cancelled) {
        if (cancelled) return;
        auto const of = targets_.find(target);
        if (of == targets_.end() || std::ranges::count(of->second.idle, connection) == 0) return;
        drop(of, connection);
        settle(target);
    });
}

void Pool::on_failure(TlsTarget const& target, Outbound const* connection,
                      Outbound::Failure failure) {
    auto const at = targets_.find(target);
    bool const used = at->second.connections.at(connection).used;
    auto const errand = drop(at, connection);
    if (!errand) return settle(target);
    // The server may have ended a kept connection before it read the request.
    bool const once_more = used && !failure.heard && !errand->again &&
                           (failure.sent == Sent::no || errand->repeatable);
    if (once_more) {
        if (auto tls = contexts_.of(target)) {
            errand->again = true;
            return open_for(errand, std::move(*tls));
        }
    }
    auto& problem = failure.error.problem;
    if (errand->changes && failure.sent == Sent::maybe && problem == Problem::unavailable)
        problem = Problem::timed_out;
    give(errand, fail(std::move(failure.error)));
    settle(target);
}

void Pool::on_late(std::shared_ptr<Errand> const& errand) {
    auto const at = targets_.find(errand->target);
    if (!errand->done || at == targets_.end()) return;
    if (auto const carrier = errand->carrier) {
        give(errand, fail(carrier->late()));
        drop(at, carrier.get());
    } else {
        numbers_.waiting -= std::erase(at->second.waiting, errand);
        give(errand, fail(not_asked(errand->target)));
    }
    settle(errand->target);
}

// Returns what it carried.
std::shared_ptr<Errand> Pool::drop(Targets::iterator at, Outbound const* connection) {
    auto& of = at->second;
    auto const found = of.connections.find(connection);
    found->second.connection->close();
    auto carried = std::move(found->second.carries);
    if (std::ranges::count(of.idle, connection) > 0) end_idle(of, found->second);
    of.connections.erase(found);
    --numbers_.connections;
    return carried;
}

void Pool::end_idle(OfTarget& of, Kept& kept) {
    std::erase(of.idle, kept.connection.get());
    idle_.erase(kept.idle_at);
    --numbers_.idle;
}

void Pool::forget_if_empty(Targets::iterator at) {
    auto const& of = at->second;
    if (of.connections.empty() && of.waiting.empty() && !of.in_line) targets_.erase(at);
}

// After a connection of this target has ended or become idle.
void Pool::settle(TlsTarget const& target) {
    auto const place_left = [this] {
        return numbers_.connections < settings_.connections_max || !idle_.empty();
    };
    // First those that waited for a connection of any target.
    while (!line_.empty() && place_left()) {
        auto const next = targets_.find(line_.front());
        line_.pop_front();
        next->second.in_line = false;
        dispatch(next);
        forget_if_empty(next);
    }
    auto const at = targets_.find(target);
    if (at == targets_.end()) return;
    dispatch(at);
    forget_if_empty(at);
}

// Later: a callback may throw, or take its time.
void Pool::give(std::shared_ptr<Errand> const& errand, Result<Response> result) {
    errand->deadline.cancel();
    errand->carrier.reset();
    if (!errand->done) return;
    asio::post(io_, [done = std::exchange(errand->done, nullptr),
                     result = std::move(result)]() mutable { done(std::move(result)); });
}

void Pool::stop() {
    stopped_ = true;
    for (auto& [target, of] : targets_) {
        for (auto const& errand : of.waiting) give(errand, fail(client_stops(target, Sent::no)));
        for (auto& [key, kept] : of.connections) {
            auto const sent = kept.connection->sent();
            kept.connection->close();
            if (kept.carries) give(kept.carries, fail(client_stops(target, sent)));
        }
    }
    targets_.clear();
    idle_.clear();
    line_.clear();
    numbers_.connections = numbers_.idle = numbers_.waiting = 0;
}

}  // namespace vfmgr::http
