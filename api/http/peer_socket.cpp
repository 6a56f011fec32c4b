// SPDX-License-Identifier: Apache-2.0
#include "api/http/peer_socket.hpp"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "api/http/listening.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

Result<void> PeerSocket::open(FileDescriptor fd, SSL_CTX* tls) {
    ErrorCode error;
    socket_.assign(asio::generic::stream_protocol(family_of(fd.get()), 0), fd.get(), error);
    if (error)
        return fail(Problem::internal, fmt::format("can't use a socket: {}", error.message()),
                    "check the limits of open files and memory");
    (void)fd.release();
    if (!tls) return {};
    SSL_CTX_up_ref(tls);
    context_.emplace(tls);
    tls_.emplace(socket_, *context_);
    return {};
}

void PeerSocket::close() {
    ErrorCode ignored;
    socket_.close(ignored);
}

void PeerSocket::cancel() {
    ErrorCode ignored;
    socket_.cancel(ignored);
}

void PeerSocket::handshake(As as, Done done) {
    tls_->async_handshake(
        as == As::server ? asio::ssl::stream_base::server : asio::ssl::stream_base::client,
        std::move(done));
}

void PeerSocket::write(std::vector<std::string_view> const& parts, Done done) {
    std::vector<asio::const_buffer> buffers;
    for (auto const& part : parts) buffers.emplace_back(part.data(), part.size());
    with_stream([&](auto& stream) {
        asio::async_write(stream, buffers,
                          [done = std::move(done)](ErrorCode error, std::size_t) { done(error); });
    });
}

void PeerSocket::end(std::function<void()> done) {
    if (!tls_) return drain(std::move(done));
    tls_->async_shutdown(
        [this, done = std::move(done)](ErrorCode) mutable { drain(std::move(done)); });
}

// `done` keeps this alive. A socket that was closed meanwhile has nothing to read.
void PeerSocket::drain(std::function<void()> done) {
    ErrorCode ignored;
    socket_.shutdown(Plain::shutdown_send, ignored);
    socket_.async_read_some(asio::buffer(drained_),
                            [this, done = std::move(done)](ErrorCode error, std::size_t) mutable {
                                if (error) return done();
                                drain(std::move(done));
                            });
}

void PeerSocket::watch(Plain::wait_type kind, std::function<bool()> go_on) {
    socket_.async_wait(kind, [this, kind, go_on = std::move(go_on)](ErrorCode failed) mutable {
        if (!failed && go_on()) watch(kind, std::move(go_on));
    });
}

}  // namespace vfmgr::http
