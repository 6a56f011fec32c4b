// SPDX-License-Identifier: Apache-2.0
#include "api/http/connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <optional>

#include "api/http/listening.hpp"
#include "api/http/parser.hpp"
#include "api/http/peer_socket.hpp"
#include "api/http/streaming.hpp"
#include "api/http/wire.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using ErrorCode = boost::system::error_code;
using Parser = wire::request_parser<wire::string_body>;
using Message = wire::response<wire::span_body<char const>>;

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
    explicit BeastConnection(ConnectionSetup setup) : setup_(std::move(setup)), peer_(setup_.io) {}

    void start() override;
    void close() override;
    void give_way(std::string const& refusal) override;
    [[nodiscard]] Standing standing() const override {
        return {phase_ != Phase::answering && phase_ != Phase::writing,
                setup_.tls && !presence_->known, streaming_ != nullptr};
    }
    void cut(Which const& which) override {
        if (!which(setup_.peer, *presence_)) return;
        if (phase_ != Phase::writing) return close();
        finishing_ = true;  // the answer that is on its way is still the peer's
    }
    void verify_again(SSL_CTX* trust) override {
        if (auto* const session = peer_.session(); session && !still_verifies(session, trust))
            close();
    }
    void finish(Finish when) override;
    void answer(std::uint64_t sequence, std::optional<Response> response);

  private:
    enum class Phase { handshake, idle, reading, answering, writing, streaming, lingering, closed };
    enum class After { keep, close };

    void on_handshake(ErrorCode failed);
    void enter(Phase phase, std::chrono::milliseconds limit);
    void arm(std::chrono::milliseconds limit);
    void expired();
    void watch_for_end();
    [[nodiscard]] bool goes_on(PeerState state);
    void wait_for_request();
    void read_header();
    void on_header(ErrorCode error);
    void read_body();
    void on_read_failed(ErrorCode error);
    void dispatch();
    void watch_vsock_peer();
    void refuse(Refusal const& refusal);
    void send(Response response, After after);
    void begin_stream();
    [[nodiscard]] Streaming::Seams seams();
    void linger();

    ConnectionSetup setup_;
    PeerSocket peer_;
    asio::steady_timer deadline_{setup_.io};
    asio::steady_timer hold_{setup_.io};  // delays a held-back answer
    beast::flat_buffer buffer_{setup_.limits.header_bytes_max + 64 * 1024};
    std::optional<Parser> parser_;
    Frame body_;  // of the message
    std::optional<Message> message_;
    std::optional<wire::response_serializer<Message::body_type>> serializer_;
    std::unique_ptr<Streaming> streaming_;  // the answer is, or will be, a stream
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
    if (!peer_.open(std::move(setup_.fd), setup_.tls)) return close();
    presence_->take_place = setup_.take_place;
    watch_for_end();
    enter(Phase::handshake,
          setup_.tls ? setup_.limits.first_request_seconds_max : setup_.limits.read_seconds_max);
    if (!setup_.tls) return wait_for_request();
    peer_.handshake(PeerSocket::As::server,
                    [self = shared_from_this()](ErrorCode failed) { self->on_handshake(failed); });
}

void BeastConnection::on_handshake(ErrorCode failed) {
    if (!failed) {
        if (auto* const peer = std::get_if<TcpPeer>(&setup_.peer))
            peer->certificate = peer_certificate(peer_.session());
        return wait_for_request();
    }
    auto const why = verify_text(peer_.session());
    if (phase_ == Phase::closed || why.empty()) return close();
    setup_.on_refused(setup_.peer, {Problem::unauthorized, "its certificate is refused: " + why,
                                    "see client_ca_file and client_crl_file in vfmgr.toml"});
    enter(Phase::lingering, refused_seconds);
}

// Frees the place of a long poll whose client has gone. Asks the kernel again, because Asio also
// completes a wait for a leftover event of a closed descriptor whose memory this one reuses.
void BeastConnection::watch_for_end() {
    peer_.watch(PeerSocket::Plain::wait_error, [self = shared_from_this()] {
        if (self->phase_ == Phase::closed) return false;
        return peer_state(self->peer_.fd()) == PeerState::gone ? self->goes_on(PeerState::gone)
                                                               : true;
    });
}

// When a vsock peer ends the connection, only readers wake.
void BeastConnection::watch_vsock_peer() {
    peer_.watch(PeerSocket::Plain::wait_read, [self = shared_from_this(), sequence = sequence_] {
        if (self->phase_ != Phase::answering || sequence != self->sequence_) return false;
        return self->goes_on(peer_state(self->peer_.fd()));
    });
}

// False: there is nothing more to watch for.
bool BeastConnection::goes_on(PeerState state) {
    if (state == PeerState::gone) close();
    return state == PeerState::quiet;
}

void BeastConnection::close() {
    if (phase_ == Phase::closed) return;
    phase_ = Phase::closed;
    presence_->gone = true;
    presence_->take_place = nullptr;
    peer_.close();
    deadline_.cancel();
    hold_.cancel();
    setup_.on_end();
}

// Sends what the socket takes at once, and closes the connection.
void BeastConnection::give_way(std::string const& refusal) {
    if (!peer_.has_tls() && phase_ != Phase::writing && phase_ != Phase::lingering)
        (void)::send(peer_.fd(), refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    close();
}

void BeastConnection::finish(Finish when) {
    finishing_ = true;
    if (phase_ == Phase::handshake || phase_ == Phase::idle) return close();
    if (phase_ == Phase::streaming) return streaming_->finish();
    if (when == Finish::when_answered || phase_ != Phase::answering) return;
    refuse(stopping());
}

void BeastConnection::enter(Phase phase, std::chrono::milliseconds limit) {
    phase_ = phase;
    expired_ = false;
    arm(limit);
}

void BeastConnection::arm(std::chrono::milliseconds limit) {
    deadline_.expires_after(limit);
    deadline_.async_wait([self = shared_from_this(), arming = ++arming_](ErrorCode error) {
        if (!error && arming == self->arming_) self->expired();
    });
}

void BeastConnection::expired() {
    switch (phase_) {
        case Phase::reading:
            expired_ = true;  // the aborted read answers 408
            peer_.cancel();
            return arm(cancel_again_seconds);
        case Phase::answering:
            return refuse(unanswered(setup_.limits));
        case Phase::streaming:
            if (streaming_->expired()) return;
            return close();
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
    peer_.with_stream([this](auto& stream) {
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
    id_.clear();
    parser_.emplace();
    prepare(*parser_, setup_.limits);
    peer_.with_stream([this](auto& stream) {
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
    peer_.write({"HTTP/1.1 100 Continue\r\n\r\n"}, [self = shared_from_this()](ErrorCode failed) {
        if (failed)
            self->on_read_failed(failed);
        else
            self->read_body();
    });
}

void BeastConnection::read_body() {
    if (phase_ == Phase::closed) return;
    peer_.with_stream([this](auto& stream) {
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
    if (id_.empty()) id_ = random_request_id();
    send(problem_response_as(refusal.status, refusal.error, path_, id_), After::close);
}

void BeastConnection::send(Response response, After after) {
    auto const& header = parser_->get();
    bool const head = header.method() == wire::verb::head;
    auto const stream = response.stream;
    response = sendable(std::move(response), id_);
    body_ = response.text ? response.text : std::make_shared<Frame::element_type>(response.body);
    message_ = message_of<Message>(response, *body_);
    bool const keep = after == After::keep && !finishing_ && !standing().stranger &&
                      parser_->is_done() && header.keep_alive() && (head || !stream);
    message_->version(header.version() == 10 ? 10 : 11);
    message_->keep_alive(keep);
    if (stream)
        message_->chunked(message_->version() == 11);
    else if (message_->result_int() != 204 && message_->result_int() != 304)
        message_->content_length(message_->body().size());
    serializer_.emplace(*message_);
    enter(Phase::writing, setup_.limits.read_seconds_max);
    if (stream && !head)
        streaming_ = std::make_unique<Streaming>(
            stream,
            message_->chunked() ? Streaming::Coding::chunked : Streaming::Coding::until_close,
            setup_.limits.read_seconds_max, seams());
    auto done = [self = shared_from_this(), keep](ErrorCode error, std::size_t) {
        if (error)
            self->close();
        else if (self->streaming_)
            self->begin_stream();
        else if (keep && !self->finishing_)  // finish() may have begun since
            self->wait_for_request();
        else
            self->linger();
    };
    peer_.with_stream([&](auto& to) {
        if (head || stream)
            wire::async_write_header(to, *serializer_, std::move(done));
        else
            wire::async_write(to, *serializer_, std::move(done));
    });
}

void BeastConnection::begin_stream() {
    phase_ = Phase::streaming;
    // Nothing is read from a reader, so only a write would notice its end.
    peer_.watch(PeerSocket::Plain::wait_read, [self = shared_from_this()] {
        return self->streaming_ && self->goes_on(reader_state(self->peer_.fd()));
    });
    streaming_->begin([connection = weak_from_this()] {
        auto const alive = connection.lock();
        if (alive && alive->phase_ == Phase::streaming) alive->streaming_->woken();
    });
    if (finishing_) streaming_->finish();  // finish() came while the header was written
}

Streaming::Seams BeastConnection::seams() {
    return {.write =
                [this](std::vector<std::string_view> const& parts, std::function<void()> written) {
                    peer_.write(parts, [self = shared_from_this(),
                                        written = std::move(written)](ErrorCode error) {
                        if (error) return self->close();
                        if (self->phase_ == Phase::streaming) written();
                    });
                },
            .arm = [this](std::chrono::milliseconds time) { arm(time); },
            .end = [this] { linger(); }};
}

void BeastConnection::linger() {
    if (phase_ == Phase::closed) return;
    enter(Phase::lingering, linger_seconds_max);
    peer_.end([self = shared_from_this()] { self->close(); });
}

}  // namespace

std::shared_ptr<Connection> make_connection(ConnectionSetup setup) {
    return std::make_shared<BeastConnection>(std::move(setup));
}

}  // namespace vfmgr::http
