// SPDX-License-Identifier: Apache-2.0
#include "api/http/connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <optional>

#include "api/http/listening.hpp"
#include "api/http/parser.hpp"
#include "api/http/wire.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using ErrorCode = boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Parser = wire::request_parser<wire::string_body>;
using Message = wire::response<wire::string_body>;

namespace {

// How long a closing connection lingers, so that the peer takes the answer and closes first.
// Closing at once with unread input would reset the connection and destroy the answer in flight.
constexpr std::chrono::seconds linger_seconds_max{5};
// A client whose certificate was refused keeps its place for this long, so that trying many
// certificates takes long.
constexpr std::chrono::seconds refused_seconds{1};
constexpr std::size_t read_chunk_bytes = 16 * 1024;
// A cancellation reaches only a pending read. If a read has completed but its callback is still
// queued, the next read starts anyway; the deadline is re-armed for this long to cancel that one.
constexpr std::chrono::seconds cancel_again_seconds{1};

class BeastConnection final : public Connection,
                              public std::enable_shared_from_this<BeastConnection> {
  public:
    explicit BeastConnection(ConnectionSetup setup)
        : setup_(std::move(setup)), socket_(setup_.io) {}

    void start() override;
    void close() override;
    void give_way(std::string const& refusal) override;
    [[nodiscard]] Standing standing() const override {
        return {phase_ != Phase::answering && phase_ != Phase::writing,
                setup_.tls && !presence_->known};
    }
    void cut(Which const& which) override {
        if (!which(setup_.peer, *presence_)) return;
        if (phase_ != Phase::writing) return close();
        finishing_ = true;  // the answer that is on its way is still the peer's
    }
    void verify_again(SSL_CTX* trust) override {
        if (tls_ && !still_verifies(tls_->native_handle(), trust)) close();
    }
    void finish(Finish when) override;
    void answer(std::uint64_t sequence, std::optional<Response> response);

  private:
    enum class Phase { handshake, idle, reading, answering, writing, lingering, closed };
    enum class After { keep, close };

    // Asio's and Beast's operations are templates over the stream; only this function chooses it.
    template <class Operation>
    void with_stream(Operation operation) {
        if (tls_)
            operation(*tls_);
        else
            operation(socket_);
    }
    void on_handshake(ErrorCode failed);
    void enter(Phase phase, std::chrono::seconds limit);
    void arm(std::chrono::seconds limit);
    void expired();
    void watch_for_end();
    void wait_for_request();
    void read_header();
    void on_header(ErrorCode error);
    void read_body();
    void on_read_failed(ErrorCode error);
    void dispatch();
    void watch_vsock_peer();
    void refuse(Refusal const& refusal);
    void send(Response response, After after);
    void linger();
    void drain();

    ConnectionSetup setup_;
    Socket socket_;
    std::optional<asio::ssl::context> context_;
    std::optional<asio::ssl::stream<Socket&>> tls_;
    asio::steady_timer deadline_{setup_.io};
    asio::steady_timer hold_{setup_.io};  // delays a held-back answer
    beast::flat_buffer buffer_{setup_.limits.header_bytes_max + 64 * 1024};
    std::optional<Parser> parser_;
    std::optional<Message> message_;
    std::optional<wire::response_serializer<wire::string_body>> serializer_;
    Request request_;
    std::string path_;  // path of the request being read or answered
    std::string id_;    // its X-Request-Id
    std::shared_ptr<Presence> presence_ = std::make_shared<Presence>();
    Phase phase_ = Phase::handshake;
    std::uint64_t sequence_ = 0;  // number of the request being answered
    std::uint64_t arming_ = 0;    // number of the deadline's last arming
    bool expired_ = false;
    bool finishing_ = false;
};

void BeastConnection::start() {
    ErrorCode error;
    socket_.assign(asio::generic::stream_protocol(family_of(setup_.fd.get()), 0), setup_.fd.get(),
                   error);
    if (error) return close();
    (void)setup_.fd.release();
    presence_->take_place = [this](std::string const& name) {
        return setup_.take_place(*this, name);
    };
    watch_for_end();
    enter(Phase::handshake,
          setup_.tls ? setup_.limits.first_request_seconds_max : setup_.limits.read_seconds_max);
    if (!setup_.tls) return wait_for_request();
    SSL_CTX_up_ref(setup_.tls);
    context_.emplace(setup_.tls);
    tls_.emplace(socket_, *context_);
    tls_->async_handshake(
        asio::ssl::stream_base::server,
        [self = shared_from_this()](ErrorCode failed) { self->on_handshake(failed); });
}

void BeastConnection::on_handshake(ErrorCode failed) {
    auto* const session = tls_->native_handle();
    if (!failed) {
        if (auto* const peer = std::get_if<TcpPeer>(&setup_.peer))
            peer->certificate = peer_certificate(session);
        return wait_for_request();
    }
    auto const why = verify_text(session);
    if (phase_ == Phase::closed || why.empty()) return close();
    setup_.on_refused(setup_.peer, {Problem::unauthorized, "its certificate is refused: " + why,
                                    "see client_ca_file and client_crl_file in vfmgr.toml"});
    enter(Phase::lingering, refused_seconds);
}

// Frees the place of a long poll whose client has gone. Asks the kernel again, because Asio also
// completes a wait for a leftover event of a closed descriptor whose memory this one reuses.
void BeastConnection::watch_for_end() {
    socket_.async_wait(Socket::wait_error, [self = shared_from_this()](ErrorCode failed) {
        if (failed || self->phase_ == Phase::closed) return;
        if (peer_state(self->socket_.native_handle()) == PeerState::gone) return self->close();
        self->watch_for_end();
    });
}

// When a vsock peer ends the connection, only readers wake.
void BeastConnection::watch_vsock_peer() {
    auto const readable = [self = shared_from_this(), sequence = sequence_](ErrorCode failed) {
        if (failed || self->phase_ != Phase::answering || sequence != self->sequence_) return;
        auto const state = peer_state(self->socket_.native_handle());
        if (state == PeerState::gone) return self->close();
        if (state == PeerState::quiet) self->watch_vsock_peer();
    };
    socket_.async_wait(Socket::wait_read, readable);
}

void BeastConnection::close() {
    if (phase_ == Phase::closed) return;
    phase_ = Phase::closed;
    presence_->gone = true;
    presence_->take_place = nullptr;
    ErrorCode ignored;
    socket_.close(ignored);
    deadline_.cancel();
    hold_.cancel();
    setup_.on_end(*this);
}

// Sends what the socket takes at once, and closes the connection.
void BeastConnection::give_way(std::string const& refusal) {
    if (!tls_ && phase_ != Phase::writing && phase_ != Phase::lingering)
        (void)::send(socket_.native_handle(), refusal.data(), refusal.size(),
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    close();
}

void BeastConnection::finish(Finish when) {
    finishing_ = true;
    if (phase_ == Phase::handshake || phase_ == Phase::idle) return close();
    if (when == Finish::when_answered || phase_ != Phase::answering) return;
    refuse(stopping());
}

void BeastConnection::enter(Phase phase, std::chrono::seconds limit) {
    phase_ = phase;
    expired_ = false;
    arm(limit);
}

void BeastConnection::arm(std::chrono::seconds limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([self = shared_from_this(), arming = ++arming_](ErrorCode error) {
        if (!error && arming == self->arming_) self->expired();
    });
}

void BeastConnection::expired() {
    switch (phase_) {
        case Phase::reading: {
            expired_ = true;  // the aborted read answers 408
            ErrorCode ignored;
            socket_.cancel(ignored);
            return arm(cancel_again_seconds);
        }
        case Phase::answering:
            return refuse(unanswered(setup_.limits));
        case Phase::handshake:
        case Phase::idle:
        case Phase::writing:
        case Phase::lingering:
        case Phase::closed:
            return close();
    }
}

void BeastConnection::wait_for_request() {
    if (phase_ == Phase::closed) return;
    if (buffer_.size() > 0) return read_header();  // pipelined request
    // The time limit of the first request runs from accept.
    if (phase_ != Phase::handshake) enter(Phase::idle, setup_.limits.idle_seconds_max);
    with_stream([this](auto& stream) {
        stream.async_read_some(buffer_.prepare(read_chunk_bytes),
                               [self = shared_from_this()](ErrorCode error, std::size_t size) {
                                   if (error) return self->close();
                                   self->buffer_.commit(size);
                                   self->read_header();
                               });
    });
}

void BeastConnection::read_header() {
    if (phase_ == Phase::closed) return;
    // The first request of a stranger gets what is left of the handshake's time.
    if (!standing().stranger || sequence_ > 0)
        enter(Phase::reading, setup_.limits.read_seconds_max);
    phase_ = Phase::reading;
    request_ = {};
    path_.clear();
    id_ = random_request_id();
    parser_.emplace();
    prepare(*parser_, setup_.limits);
    with_stream([this](auto& stream) {
        wire::async_read_header(
            stream, buffer_, *parser_,
            [self = shared_from_this()](ErrorCode error, std::size_t) { self->on_header(error); });
    });
}

void BeastConnection::on_header(ErrorCode error) {
    if (error) return on_read_failed(error);
    if (phase_ == Phase::closed) return;
    if (expired_) return refuse(too_slow(setup_.limits));
    auto request = request_of(header_of(*parser_), setup_.peer);
    if (!request) return refuse(request.error());
    request_ = std::move(*request);
    path_ = request_.path;
    id_ = request_.headers["x-request-id"];
    bool const expects = request_.headers.contains("expect");
    if (!expects || parser_->is_done() || buffer_.size() > 0) return read_body();
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    with_stream([this](auto& stream) {
        asio::async_write(stream, asio::buffer(go_on.data(), go_on.size()),
                          [self = shared_from_this()](ErrorCode failed, std::size_t) {
                              if (failed)
                                  self->on_read_failed(failed);
                              else
                                  self->read_body();
                          });
    });
}

void BeastConnection::read_body() {
    if (phase_ == Phase::closed) return;
    with_stream([this](auto& stream) {
        wire::async_read(stream, buffer_, *parser_,
                         [self = shared_from_this()](ErrorCode error, std::size_t) {
                             if (error)
                                 self->on_read_failed(error);
                             else if (self->phase_ != Phase::closed)
                                 self->dispatch();
                         });
    });
}

void BeastConnection::on_read_failed(ErrorCode error) {
    if (phase_ == Phase::closed) return;
    if (expired_ && error == asio::error::operation_aborted) return refuse(too_slow(setup_.limits));
    if (auto refusal = refusal_of(error, setup_.limits)) return refuse(*refusal);
    close();
}

void BeastConnection::dispatch() {
    request_.body = std::move(parser_->get().body());
    request_.presence = presence_;
    enter(Phase::answering, setup_.limits.answer_seconds_max);
    ++sequence_;
    if (std::holds_alternative<VsockPeer>(setup_.peer)) watch_vsock_peer();
    auto const respond = make_respond(
        setup_.mailbox,
        [connection = weak_from_this(), sequence = sequence_](std::optional<Response> response) {
            if (auto alive = connection.lock()) alive->answer(sequence, std::move(response));
        });
    call_handler(setup_.handler, std::move(request_), respond);
}

void BeastConnection::answer(std::uint64_t sequence, std::optional<Response> response) {
    if (phase_ != Phase::answering || sequence != sequence_) return;  // too late
    if (!response)
        response = problem_response({Problem::internal, "the request was dropped without an answer",
                                     "report this with the daemon's log"},
                                    path_, id_);
    if (!response->hold.count()) return send(std::move(*response), After::keep);
    hold_.expires_after(std::exchange(response->hold, std::chrono::milliseconds(0)));
    hold_.async_wait([self = shared_from_this(), sequence, held = std::move(response)](auto gone) {
        if (!gone) self->answer(sequence, held);
    });
}

void BeastConnection::refuse(Refusal const& refusal) {
    send(problem_response_as(refusal.status, refusal.error, path_, id_), After::close);
}

void BeastConnection::send(Response response, After after) {
    auto const& header = parser_->get();
    message_ = message_of<Message>(std::move(response), id_);
    bool const keep = after == After::keep && !finishing_ && !standing().stranger &&
                      parser_->is_done() && header.keep_alive();
    message_->version(header.version() == 10 ? 10 : 11);
    message_->keep_alive(keep);
    if (message_->result_int() != 204 && message_->result_int() != 304)
        message_->content_length(message_->body().size());
    serializer_.emplace(*message_);
    enter(Phase::writing, setup_.limits.read_seconds_max);
    auto done = [self = shared_from_this(), keep](ErrorCode error, std::size_t) {
        if (error)
            self->close();
        else if (keep && !self->finishing_)  // finish() may have begun since
            self->wait_for_request();
        else
            self->linger();
    };
    bool const head = header.method() == wire::verb::head;
    with_stream([&](auto& stream) {
        if (head)
            wire::async_write_header(stream, *serializer_, std::move(done));
        else
            wire::async_write(stream, *serializer_, std::move(done));
    });
}

void BeastConnection::linger() {
    if (phase_ == Phase::closed) return;
    enter(Phase::lingering, linger_seconds_max);
    if (!tls_) return drain();
    tls_->async_shutdown([self = shared_from_this()](ErrorCode) { self->drain(); });
}

void BeastConnection::drain() {
    if (phase_ == Phase::closed) return;
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    buffer_.clear();
    socket_.async_read_some(buffer_.prepare(read_chunk_bytes),
                            [self = shared_from_this()](ErrorCode error, std::size_t) {
                                if (error)
                                    self->close();
                                else
                                    self->drain();
                            });
}

}  // namespace

std::shared_ptr<Connection> make_connection(ConnectionSetup setup) {
    return std::make_shared<BeastConnection>(std::move(setup));
}

}  // namespace vfmgr::http
