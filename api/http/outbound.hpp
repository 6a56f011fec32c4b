// SPDX-License-Identifier: Apache-2.0
// One connection to a server, over TLS: it connects, and then carries one request after the other.
// Internal to api/http. Lives on the io thread; owned by its pool and by its own pending
// operations.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/http/outgoing.hpp"
#include "api/http/peer_socket.hpp"
#include "api/http/resolver.hpp"

namespace vfmgr::http {

class Outbound : public std::enable_shared_from_this<Outbound> {
  public:
    struct Failure {
        Error error;
        Sent sent = Sent::no;  // whether the server may have read any of the request
        bool heard = false;    // any of an answer came
    };
    // Called at most once, when the connection has ended by itself. It is closed then.
    using Failed = std::function<void(Failure)>;
    struct Question {
        std::shared_ptr<std::string const> text{};
        AnswerReader::Of of = AnswerReader::Of::get;
        Sent if_read = Sent::maybe;  // Sent::no: a request that changes nothing
        // The whole answer; of a stream, its end.
        std::function<void(Response)> answered{};
        // For a stream: its status and headers, 2xx, and then its parts.
        std::function<void(Response)> begun{};
        std::function<void(std::string_view)> take{};  // empty: the answer is no stream
    };

    Outbound(boost::asio::io_context& io, Resolver& resolver, TlsTarget const& target,
             std::shared_ptr<SSL_CTX> tls)
        : io_(io), resolver_(resolver), target_(target), tls_(std::move(tls)) {}

    void open(std::function<void()> opened, Failed failed);
    void ask(Question question);
    // Nothing comes that was not asked for, and the server has not ended it.
    [[nodiscard]] bool usable();
    // Whether it carries another request, after an answer.
    [[nodiscard]] bool kept() const { return phase_ == Phase::idle; }
    // Reads no more of a stream until resume().
    void pause() { paused_ = true; }
    void resume();
    // Nothing is called any more.
    void close();
    [[nodiscard]] std::shared_ptr<SSL_CTX> const& tls() const { return tls_; }
    // What a deadline that passes now means.
    [[nodiscard]] Error late() const;
    // Whether the server may have read something that counts of what is asked.
    [[nodiscard]] Sent sent() const;

  private:
    enum class Phase { connecting, shaking_hands, idle, asking, closed };

    void try_next();
    void on_connected(std::uint64_t attempt);
    void on_handshake(boost::system::error_code failed);
    void write();
    void read();
    void on_read(boost::system::error_code error, std::size_t size);
    void take_answer();
    void take_part();
    void finish_answer();
    void fail_with(Error error);
    void on_cut(boost::system::error_code error);

    boost::asio::io_context& io_;
    Resolver& resolver_;
    TlsTarget const target_;
    std::shared_ptr<SSL_CTX> const tls_;
    std::vector<SocketAddress> addresses_;  // that were not tried
    std::uint64_t attempts_ = 0;
    std::unique_ptr<PeerSocket> socket_;
    std::function<void()> opened_;
    Failed failed_;
    Phase phase_ = Phase::connecting;
    Question question_;
    std::optional<AnswerReader> answer_;
    enum class Writing { under_way, done, failed_at_once, failed };
    Writing writing_ = Writing::done;
    bool begun_ = false;    // the stream's header was passed on
    bool reading_ = false;  // a read is pending
    bool paused_ = false;
    std::array<char, 16 * 1024> part_;
};

}  // namespace vfmgr::http
