// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <thread>

#include "api/http/connection.hpp"
#include "api/http/http.hpp"
#include "api/http/listening.hpp"
#include "api/http/places.hpp"
#include "api/http/wire.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

namespace {

constexpr std::chrono::seconds accept_retry_seconds{1};
constexpr std::chrono::seconds last_word_time{1};  // to write a pending answer
constexpr std::size_t known_peers_max = 1024;

using TurnedAway = std::function<void(Peer const&, Error const&)>;

// Sends what the socket takes at once; never waits for the peer.
void turn_away(int fd, Error const& error) {
    auto const text = refusal_text(error);
    (void)::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

SourcePort source_of(Listen const& where) {
    auto const* const vsock = std::get_if<VsockListen>(&where);
    return vsock ? vsock->source : SourcePort::any;
}

// Contains exceptions. One that leaves the io thread ends the daemon; this limits the damage to the
// connection that threw.
template <class Work>
bool returns(OnBug const& on_bug, Work work) {
    try {
        work();
        return true;
    } catch (std::exception const& bug) {
        on_bug(bug.what());
    } catch (...) {
        on_bug("an exception of unknown type");
    }
    return false;
}

// A listening socket with its connections. Lives on the io thread; owned by Server::Impl. Each
// listener has its own caps, so guests on vsock can't take an admin's place on the unix socket.
class Listener {
  public:
    Listener(asio::io_context& io, std::shared_ptr<Mailbox> mailbox, Limits const& limits,
             ListeningSocket socket, SourcePort source, SslContext tls, Handler handler,
             TurnedAway const& turned_away, std::function<void()> on_empty, OnBug const& on_bug)
        : io_(io),
          mailbox_(std::move(mailbox)),
          on_bug_(on_bug),
          limits_(limits),
          file_(std::move(socket.file)),
          descriptor_(io, socket.fd.release()),
          retry_(io),
          source_(source),
          tls_(std::move(tls)),
          handler_(std::move(handler)),
          turned_away_(turned_away),
          on_empty_(std::move(on_empty)) {}

    void accept_next();
    void close();
    void stop_accepting();
    void finish(Finish when);
    void cut(Which const& which);
    void renew(SSL_CTX* tls);
    void limit(Limits const& limits) { limits_ = limits; }
    [[nodiscard]] bool empty() const { return connections_.empty(); }

  private:
    enum class Accepted { yes, no_resources };
    Accepted accept_one();
    void admit(FileDescriptor fd);
    [[nodiscard]] Result<void> make_room(std::string const& peer,
                                         Connection const* besides = nullptr);
    [[nodiscard]] Result<void> make_room_for_stranger(std::string const& address);
    [[nodiscard]] Result<void> take_place(Connection const& connection, std::string const& name);
    void give_way(std::uint64_t number, std::string why);
    void forget(Connection const& connection);

    asio::io_context& io_;
    std::shared_ptr<Mailbox> mailbox_;
    OnBug const& on_bug_;
    Limits limits_;
    Held file_;
    asio::posix::stream_descriptor descriptor_;
    asio::steady_timer retry_;
    SourcePort const source_;
    SslContext tls_;
    Handler handler_;
    TurnedAway const& turned_away_;
    KnownPeers known_{known_peers_max};
    struct Kept {
        std::shared_ptr<Connection> connection;
        Peer peer;
        std::string address;  // stranger_key() with TLS, otherwise peer_key()
        std::string shares;   // the key of its places: the address, then a name
        std::uint64_t number = 0;
    };
    std::map<Connection const*, Kept> connections_;
    std::uint64_t so_far_ = 0;
    std::function<void()> on_empty_;  // called when the last connection has ended
};

void Listener::accept_next() {
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](ErrorCode error) {
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
    auto const room = tls_ ? make_room_for_stranger(key) : make_room(key);
    if (!room) {
        if (turned_away_) turned_away_(*peer, room.error());
        if (!tls_) turn_away(fd.get(), room.error());
        return;
    }
    // The last segment of an answer must not wait for the ACK of the one before.
    int const one = 1;
    if (std::holds_alternative<TcpPeer>(*peer))
        (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    auto const connection = make_connection(
        {.io = io_,
         .mailbox = mailbox_,
         .fd = std::move(fd),
         .peer = *peer,
         .tls = tls_.get(),
         .limits = limits_,
         .handler = handler_,
         .on_end = [this](Connection const& ended) { forget(ended); },
         .on_refused =
             [this](Peer const& refused, Error const& why) {
                 if (turned_away_) turned_away_(refused, why);
             },
         .take_place = [this](Connection const& known,
                              std::string const& name) { return take_place(known, name); }});
    connections_.emplace(connection.get(), Kept{connection, *peer, key, key, so_far_++});
    try {
        connection->start();
    } catch (...) {
        connection->close();  // frees its place
        throw;
    }
}

Result<void> Listener::make_room(std::string const& peer, Connection const* besides) {
    std::vector<Place> taken;
    taken.reserve(connections_.size());
    for (auto const& [connection, kept] : connections_) {
        auto const [idle, stranger, streams] = connection->standing();
        if (connection != besides && !stranger && !streams)
            taken.push_back({kept.shares, kept.number, idle});
    }
    VFMGR_TRY(auto const leaves, find_place(taken, peer, limits_));
    if (leaves) give_way(*leaves, "this connection was closed to make room for one that waited");
    return {};
}

Result<void> Listener::make_room_for_stranger(std::string const& address) {
    std::vector<Stranger> strangers;
    for (auto const& [connection, kept] : connections_)
        if (connection->standing().stranger) strangers.push_back({kept.shares, kept.number});
    auto const is = known_.contains(address) ? AddressIs::known : AddressIs::unknown;
    VFMGR_TRY(auto const leaves, find_stranger_place(strangers, address, is, limits_));
    if (leaves) give_way(*leaves, "its connection, on which nobody authenticated, made room");
    return {};
}

Result<void> Listener::take_place(Connection const& connection, std::string const& name) {
    auto& kept = connections_.at(&connection);
    if (tls_) known_.remember(kept.address);
    if (kept.shares == name && !connection.standing().stranger) return {};
    VFMGR_CHECK(make_room(name, &connection));
    kept.shares = name;
    return {};
}

void Listener::give_way(std::uint64_t number, std::string why) {
    auto const found = std::ranges::find_if(
        connections_, [&](auto const& one) { return one.second.number == number; });
    auto const [connection, peer, address, shares, same] =
        found->second;  // it removes itself from the map
    Error const error{Problem::unavailable, std::move(why), "connect again"};
    if (connection->standing().stranger && turned_away_) turned_away_(peer, error);
    connection->give_way(refusal_text(error));
}

void Listener::forget(Connection const& connection) {
    connections_.erase(&connection);
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

}  // namespace

struct Server::Impl {
    Impl(Limits given, OnBug report) : limits(given), on_bug(std::move(report)) {}
    // A connection whose callback threw ends at its deadline.
    void run_io() {
        while (!returns(on_bug, [this] { io.run(); })) continue;
    }

    Limits limits;
    OnBug on_bug;
    asio::io_context io{1};
    std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>(
        [this](std::function<void()> task) { asio::post(io, std::move(task)); });
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
        io.get_executor()};
    std::vector<std::unique_ptr<Listener>> listeners;  // io thread only
    std::thread thread;
    TurnedAway turned_away;                       // set before start()
    std::shared_ptr<std::promise<void>> emptied;  // set by finish(); io thread only

    void check_empty() {
        bool const empty = std::ranges::all_of(listeners, &Listener::empty);
        if (empty && emptied) std::exchange(emptied, nullptr)->set_value();
    }
};

Server::Server(Limits limits, OnBug on_bug)
    : impl_(std::make_unique<Impl>(limits, std::move(on_bug))) {}

Server::~Server() {
    stop();
}

Result<void> Server::listen(Listen const& where, Handler handler) {
    SslContext tls;
    if (auto const* secure = std::get_if<TlsListen>(&where)) {
        VFMGR_TRY(tls, server_context(*secure));
    }
    VFMGR_TRY(ListeningSocket socket, open_listening(where));
    auto listener = std::make_shared<std::unique_ptr<Listener>>(std::make_unique<Listener>(
        impl_->io, impl_->mailbox, impl_->limits, std::move(socket), source_of(where),
        std::move(tls), std::move(handler), impl_->turned_away,
        [impl = impl_.get()] { impl->check_empty(); }, impl_->on_bug));
    impl_->mailbox->post([this, listener] {
        impl_->listeners.push_back(std::move(*listener));
        impl_->listeners.back()->accept_next();
    });
    return {};
}

void Server::on_turned_away(std::function<void(Peer const&, Error const&)> report) {
    impl_->turned_away = std::move(report);
}

void Server::start() {
    if (impl_->thread.joinable()) return;
    // Signals go to the thread that waits for them, never to this one.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    impl_->thread = std::thread([impl = impl_.get()] { impl->run_io(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Server::stop() {
    impl_->mailbox->post([this] {
        for (auto const& listener : impl_->listeners) listener->close();
    });
    impl_->mailbox->close();
    impl_->work.reset();
    if (impl_->thread.joinable())
        impl_->thread.join();
    else
        impl_->run_io();  // never started: closes what listen() opened
    impl_->listeners.clear();
}

void Server::finish(std::chrono::milliseconds patience) {
    if (impl_->thread.joinable()) {
        auto const emptied = std::make_shared<std::promise<void>>();
        auto const all_answered = emptied->get_future();
        impl_->mailbox->post([this, emptied] {
            impl_->emptied = emptied;
            for (auto const& listener : impl_->listeners) listener->finish(Finish::when_answered);
            impl_->check_empty();
        });
        if (all_answered.wait_for(patience) != std::future_status::ready) {
            impl_->mailbox->post([this] {
                for (auto const& listener : impl_->listeners) listener->finish(Finish::now);
            });
            static_cast<void>(all_answered.wait_for(last_word_time));
        }
    }
    stop();
}

void Server::cut(Which which) {
    impl_->mailbox->post([this, which = std::move(which)] {
        for (auto const& listener : impl_->listeners) listener->cut(which);
    });
}

Result<void> Server::renew(TlsListen const& files) {
    VFMGR_TRY(SslContext context, server_context(files));
    std::shared_ptr<SSL_CTX> const tls(std::move(context));
    impl_->mailbox->post([this, tls] {
        for (auto const& listener : impl_->listeners) listener->renew(tls.get());
    });
    return {};
}

void Server::limit(Limits const& limits) {
    impl_->limits = limits;
    impl_->mailbox->post([this, limits] {
        for (auto const& listener : impl_->listeners) listener->limit(limits);
    });
}

std::function<void(std::function<void()>)> Server::io_post() const {
    return
        [mailbox = impl_->mailbox](std::function<void()> work) { mailbox->post(std::move(work)); };
}

}  // namespace vfmgr::http
