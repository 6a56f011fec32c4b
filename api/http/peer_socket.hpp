// SPDX-License-Identifier: Apache-2.0
// The socket of a connection, accepted or made, with TLS or without. Internal to api/http. Lives on
// the io thread; owned by its connection.
#pragma once

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::http {

class PeerSocket {
  public:
    using Plain = boost::asio::generic::stream_protocol::socket;
    using Done = std::function<void(boost::system::error_code)>;

    explicit PeerSocket(boost::asio::io_context& io) : socket_(io) {}
    // Without `tls`: plain. Fails with internal if this is not a socket, or can't be waited for.
    [[nodiscard]] Result<void> open(FileDescriptor fd, SSL_CTX* tls);
    void close();
    void cancel();  // what is pending

    // Asio's and Beast's operations are templates over the stream; only this function chooses it.
    template <class Operation>
    void with_stream(Operation operation) {
        if (tls_)
            operation(*tls_);
        else
            operation(socket_);
    }
    [[nodiscard]] bool has_tls() const { return tls_.has_value(); }
    [[nodiscard]] int fd() { return socket_.native_handle(); }
    // Null: plain.
    [[nodiscard]] SSL* session() { return tls_ ? tls_->native_handle() : nullptr; }
    enum class As { server, client };
    void handshake(As as, Done done);  // for TLS only
    // The parts stay as they are until `done` is called.
    void write(std::vector<std::string_view> const& parts, Done done);
    // Tells the peer that nothing more comes, and calls `done` when the peer has closed.
    void end(std::function<void()> done);

    // Calls `go_on` at each event of that kind, until it returns false. It keeps this alive.
    void watch(Plain::wait_type kind, std::function<bool()> go_on);

  private:
    void drain(std::function<void()> done);

    Plain socket_;
    std::optional<boost::asio::ssl::context> context_;
    std::optional<boost::asio::ssl::stream<Plain&>> tls_;
    std::array<char, 4096> drained_;
};

}  // namespace vfmgr::http
