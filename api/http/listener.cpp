// SPDX-License-Identifier: Apache-2.0
#include "api/http/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "api/http/wire.hpp"

namespace vfmgr::http {

using ErrorCode = boost::system::error_code;

namespace {

constexpr std::chrono::seconds accept_retry_seconds{1};

// Sends what the socket takes at once; never waits for the peer.
void turn_away(int fd, Error const& error) {
    auto const text = refusal_text(error);
    (void)::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

void Listener::accept_next() {
    descriptor_.async_wait(descriptor_.wait_read, [this](ErrorCode error) {
        if (error) return;
        // Accept one at a time, so that earlier events on other connections are handled first.
        if (accept_one() == Accepted::yes) return accept_next();
        // The kernel reports no event when descriptors or memory become free.
        retry_.expires_after(accept_retry_seconds);
        retry_.async_wait([this](ErrorCode cancelled) {
            if (!cancelled) accept_next();
        });
    });
}

Listener::Accepted Listener::accept_one() {
    FileDescriptor fd(
        ::accept4(descriptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
        // Close a connection that can't be served, and keep accepting others.
        returns(on_bug_, [&] { admit(std::move(fd)); });
        return Accepted::yes;
    }
    switch (errno) {
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            return Accepted::no_resources;
        default:  // EAGAIN, or an error of the connection to accept: accept(2)
            return Accepted::yes;
    }
}

void Listener::admit(FileDescriptor fd) {
    auto const peer = peer_of(fd.get());
    if (!peer) return;
    if (auto const good = check_source(source_, *peer); !good)
        return turn_away(fd.get(), good.error());
    auto const key = tls_ ? stranger_key(*peer) : peer_key(*peer);
    auto const room = tls_ ? make_room_for_stranger(key, address_is(key)) : make_room(key);
    if (!room) {
        if (turned_away_) turned_away_(*peer, room.error());
        if (!tls_) turn_away(fd.get(), room.error());
        return;
    }
    // The last segment of an answer must not wait for the ACK of the one before.
    int const one = 1;
    if (std::holds_alternative<TcpPeer>(*peer))
        (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    start(so_far_++, std::move(fd), *peer, key);
}

void Listener::start(std::uint64_t number, FileDescriptor fd, Peer const& peer,
                     std::string const& key) {
    auto const connection = make_connection(
        {.io = io_,
         .mailbox = mailbox_,
         .fd = std::move(fd),
         .peer = peer,
         .tls = tls_.get(),
         .limits = limits_,
         .handler = handler_,
         .on_end = [this, number] { forget(number); },
         .on_refused =
             [this](Peer const& refused, Error const& why) {
                 if (turned_away_) turned_away_(refused, why);
             },
         .take_place = [this, number](auto const& name) { return take_place(number, name); }});
    if (tls_) strangers_.add(key, address_is(key), number);
    connections_.emplace(number, Kept{connection, peer, key, key});
    try {
        connection->start();
    } catch (...) {
        connection->close();  // frees its place
        throw;
    }
}

Result<void> Listener::make_room(std::string const& peer, std::optional<std::uint64_t> besides) {
    std::vector<Place> taken;
    taken.reserve(connections_.size());
    for (auto const& [number, kept] : connections_) {
        auto const [idle, stranger, streams] = kept.connection->standing();
        if (number != besides && !stranger && !streams)
            taken.push_back({kept.shares, number, idle});
    }
    VFMGR_TRY(auto const leaves, find_place(taken, peer, limits_));
    if (leaves) give_way(*leaves, "this connection was closed to make room for one that waited");
    return {};
}

Result<void> Listener::make_room_for_stranger(std::string const& address, AddressIs is) {
    VFMGR_TRY(auto const leaves, strangers_.find_place(address, is, limits_));
    if (leaves) give_way(*leaves, "its connection, on which nobody authenticated, made room");
    return {};
}

Result<void> Listener::take_place(std::uint64_t number, std::string const& name) {
    auto& kept = connections_.at(number);
    if (tls_) known_.remember(kept.address);
    if (kept.shares == name && !strangers_.contains(number)) return {};
    VFMGR_CHECK(make_room(name, number));
    strangers_.remove(number);
    kept.shares = name;
    return {};
}

void Listener::give_way(std::uint64_t number, std::string why) {
    auto const kept = connections_.at(number);  // it removes itself from the map
    Error const error{Problem::unavailable, std::move(why), "connect again"};
    if (strangers_.contains(number) && turned_away_) turned_away_(kept.peer, error);
    kept.connection->give_way(refusal_text(error));
}

void Listener::forget(std::uint64_t number) {
    strangers_.remove(number);
    connections_.erase(number);
    if (connections_.empty()) on_empty_();
}

void Listener::close() {
    stop_accepting();
    for (auto const& [key, kept] : std::map(connections_)) kept.connection->close();
}

void Listener::stop_accepting() {
    ErrorCode ignored;
    descriptor_.close(ignored);
    retry_.cancel();
}

void Listener::finish(Finish when) {
    stop_accepting();
    for (auto const& [key, kept] : std::map(connections_)) kept.connection->finish(when);
}

void Listener::cut(Which const& which) {
    for (auto const& [key, kept] : std::map(connections_)) kept.connection->cut(which);
}

void Listener::renew(SSL_CTX* tls) {
    if (!tls_) return;
    SSL_CTX_up_ref(tls);
    tls_.reset(tls);
    for (auto const& [key, kept] : std::map(connections_)) kept.connection->verify_again(tls);
}

}  // namespace vfmgr::http
