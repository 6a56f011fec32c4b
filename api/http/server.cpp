// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <set>
#include <thread>

#include "api/http/connection.hpp"
#include "api/http/http.hpp"
#include "api/http/listening.hpp"
#include "api/http/wire.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

namespace {

constexpr std::chrono::seconds accept_retry_seconds{1};

// Beyond a cap nobody waits for the peer: what fits into the socket at once is sent.
void turn_away(int fd, std::string const& detail) {
    auto const response =
        problem_response({Problem::unavailable, detail, "close other connections, then try again"},
                         "", random_request_id());
    std::string text =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n";
    text += "Content-Type: " + response.content_type + "\r\n";
    text += "Content-Length: " + std::to_string(response.body.size()) + "\r\n\r\n" + response.body;
    (void)::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

// A listening socket with its connections. Lives on the io thread; owned by Server::Impl. Caps are
// its own, so that guests on vsock can't take an administrator's place on the unix socket.
class Listener {
  public:
    Listener(asio::io_context& io, std::shared_ptr<Mailbox> mailbox, Limits const& limits,
             ListeningSocket socket, SslContext tls, Handler handler)
        : io_(io),
          mailbox_(std::move(mailbox)),
          limits_(limits),
          file_(std::move(socket.file)),
          descriptor_(io, socket.fd.release()),
          retry_(io),
          tls_(std::move(tls)),
          handler_(std::move(handler)) {}

    void accept_next();
    void close();
    void cut_vsock(std::uint32_t cid);

  private:
    enum class Accepted { yes, no_resources };
    Accepted accept_one();
    void admit(FileDescriptor fd);
    void forget(Connection const& connection);

    asio::io_context& io_;
    std::shared_ptr<Mailbox> mailbox_;
    Limits limits_;
    SocketFile file_;
    asio::posix::stream_descriptor descriptor_;
    asio::steady_timer retry_;
    SslContext tls_;
    Handler handler_;
    std::map<Connection const*, std::shared_ptr<Connection>> connections_;
    std::map<std::string, std::size_t> by_peer_;
};

void Listener::accept_next() {
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [this](ErrorCode error) {
        if (error) return;
        // One at a time, so that what happened before on other connections is seen before it.
        if (accept_one() == Accepted::yes) return accept_next();
        // The kernel reports no event when descriptors or memory are free again.
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
        admit(std::move(fd));
        return Accepted::yes;
    }
    switch (errno) {
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            return Accepted::no_resources;
        default:  // EAGAIN, or errors of the connection that was to be accepted: accept(2)
            return Accepted::yes;
    }
}

void Listener::admit(FileDescriptor fd) {
    auto const peer = peer_of(fd.get());
    if (!peer) return;
    auto const key = peer_key(*peer);
    auto const from_peer = by_peer_.find(key);
    auto const count = from_peer == by_peer_.end() ? 0 : from_peer->second;
    bool const full = connections_.size() >= limits_.connections_max;
    if (full || count >= limits_.connections_per_peer_max) {
        if (!tls_)
            turn_away(fd.get(), full ? "all connections of this socket are taken"
                                     : "all connections that " + key + " may have are taken");
        return;
    }
    // An answer's last segment must not wait for the acknowledgement of the one before.
    int const one = 1;
    if (std::holds_alternative<TcpPeer>(*peer))
        (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ++by_peer_[key];
    auto const connection =
        make_connection({.io = io_,
                         .mailbox = mailbox_,
                         .fd = std::move(fd),
                         .peer = *peer,
                         .tls = tls_.get(),
                         .limits = limits_,
                         .handler = handler_,
                         .on_end = [this](Connection const& ended) { forget(ended); }});
    connections_.emplace(connection.get(), connection);
    http::start(*connection);
}

void Listener::forget(Connection const& connection) {
    auto const key = peer_key(peer(connection));
    if (--by_peer_[key] == 0) by_peer_.erase(key);
    connections_.erase(&connection);
}

void Listener::close() {
    ErrorCode ignored;
    descriptor_.close(ignored);
    retry_.cancel();
    for (auto const& [key, connection] : std::map(connections_)) http::close(*connection);
}

void Listener::cut_vsock(std::uint32_t cid) {
    for (auto const& [key, connection] : std::map(connections_))
        if (auto const* guest = std::get_if<VsockPeer>(&peer(*connection));
            guest && guest->cid == cid)
            http::close(*connection);
}

}  // namespace

struct Server::Impl {
    explicit Impl(Limits given) : limits(given) {}

    Limits limits;
    asio::io_context io{1};
    std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>(
        [this](std::function<void()> task) { asio::post(io, std::move(task)); });
    std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
        io.get_executor()};
    std::vector<std::unique_ptr<Listener>> listeners;  // touched by the io thread only
    std::thread thread;
};

Server::Server(Limits limits) : impl_(std::make_unique<Impl>(limits)) {}

Server::~Server() {
    stop();
}

Result<void> Server::listen(Listen const& where, Handler handler) {
    SslContext tls;
    if (auto const* secure = std::get_if<TlsListen>(&where)) {
        VFMGR_TRY(tls, server_context(*secure));
    }
    VFMGR_TRY(ListeningSocket socket, open_listening(where));
    auto listener = std::make_shared<std::unique_ptr<Listener>>(
        std::make_unique<Listener>(impl_->io, impl_->mailbox, impl_->limits, std::move(socket),
                                   std::move(tls), std::move(handler)));
    impl_->mailbox->post([this, listener] {
        impl_->listeners.push_back(std::move(*listener));
        impl_->listeners.back()->accept_next();
    });
    return {};
}

void Server::start() {
    if (impl_->thread.joinable()) return;
    // Signals are for the thread that waits for them, never for this one.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    impl_->thread = std::thread([impl = impl_.get()] { impl->io.run(); });
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
        impl_->io.run();  // never started: closes what listen() opened
    impl_->listeners.clear();
}

void Server::cut_vsock(std::uint32_t cid) {
    impl_->mailbox->post([this, cid] {
        for (auto const& listener : impl_->listeners) listener->cut_vsock(cid);
    });
}

}  // namespace vfmgr::http
