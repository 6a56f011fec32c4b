// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <optional>

#include "api/http/connecting.hpp"
#include "api/http/http.hpp"
#include "api/http/outgoing.hpp"
#include "api/http/peer_socket.hpp"
#include "api/http/tls.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

namespace {

// Runs one request over one connection. Every operation runs on `io`, within the deadline.
class Exchange {
  public:
    Exchange(Target const& target, Deadline deadline, AnswerReader::Of of = AnswerReader::Of::get)
        : target_(target), deadline_(deadline), socket_(io_), answer_(of) {}
    Result<void> open();
    // For TLS only.
    [[nodiscard]] SSL* session() { return socket_.session(); }
    Result<Response> send(std::string const& text);
    Result<Response> follow(std::string const& text, std::chrono::seconds silence_max,
                            std::function<bool(std::string_view)> const& take);

  private:
    Result<void> handshake(TlsTarget const& target);
    // Reads the answer's header.
    Result<void> begin(std::string const& text);
    Result<void> read_on(char const* doing, Sent sent);
    Result<Response> whole();
    Result<void> finish(char const* doing, Sent sent);
    Result<void> refused(char const* doing, Sent sent);

    Target const& target_;
    Deadline deadline_;
    asio::io_context io_{1};
    PeerSocket socket_;
    AnswerReader answer_;
    std::array<char, 16 * 1024> part_{};
    std::size_t part_size_ = 0;
    std::optional<ErrorCode> result_;  // result of the last operation started
};

Result<void> Exchange::open() {
    VFMGR_TRY(FileDescriptor fd, connect_to(target_, deadline_));
    auto const* const tls = std::get_if<TlsTarget>(&target_);
    SslContext context;
    if (tls) {
        VFMGR_TRY(context, client_context(*tls));
    }
    VFMGR_CHECK(socket_.open(std::move(fd), context.get()));
    return tls ? handshake(*tls) : Result<void>{};
}

Result<void> Exchange::handshake(TlsTarget const& target) {
    VFMGR_CHECK(expect_host(session(), target));
    socket_.handshake(PeerSocket::As::client, [this](ErrorCode error) { result_ = error; });
    VFMGR_CHECK(finish("the TLS handshake", Sent::no));
    return check_pins(session(), target);
}

// Runs the started operation until it ends or the deadline passes.
Result<void> Exchange::finish(char const* doing, Sent sent) {
    result_.reset();
    io_.restart();
    io_.run_until(deadline_);
    if (result_ && !*result_) return {};
    return refused(doing, sent);
}

Result<void> Exchange::refused(char const* doing, Sent sent) {
    if (!result_) return fail(not_in_time(target_, doing, sent));
    return fail(ended_during(target_, session(), *result_, doing, sent));
}

// Reads what comes next.
Result<void> Exchange::read_on(char const* doing, Sent sent) {
    socket_.with_stream([this](auto& stream) {
        stream.async_read_some(asio::buffer(part_), [this](ErrorCode error, std::size_t size) {
            result_ = error;
            part_size_ = size;
        });
    });
    auto const came = finish(doing, sent);
    std::optional<Unreadable> fault;
    if (came)
        fault = answer_.read({part_.data(), part_size_});
    else if (result_ && *result_ == asio::error::eof)
        fault = answer_.end();
    else
        return came;
    if (fault) return fail(unreadable(target_, *fault, sent));
    return {};
}

Result<void> Exchange::begin(std::string const& text) {
    socket_.write({text}, [this](ErrorCode error) { result_ = error; });
    auto const written = finish("the request", Sent::maybe);
    // A server may refuse early, answer, and stop reading. Its answer counts then, not the failed
    // write.
    if (!written && written.error().problem == Problem::timed_out) return fail(written.error());
    while (!answer_.has_header()) VFMGR_CHECK(read_on("the answer", Sent::maybe));
    return {};
}

Result<Response> Exchange::whole() {
    if (auto const fault = answer_.read({})) return fail(unreadable(target_, *fault, Sent::maybe));
    while (!answer_.done()) VFMGR_CHECK(read_on("the answer", Sent::maybe));
    return answer_.response();
}

Result<Response> Exchange::send(std::string const& text) {
    VFMGR_CHECK(begin(text));
    return whole();
}

Result<Response> Exchange::follow(std::string const& text, std::chrono::seconds silence_max,
                                  std::function<bool(std::string_view)> const& take) {
    VFMGR_CHECK(begin(text));
    if (answer_.status() / 100 != 2) return whole();
    answer_.take_as_it_comes();
    if (auto const fault = answer_.read({})) return fail(unreadable(target_, *fault, Sent::no));
    while (true) {
        auto const part = answer_.take_body();
        if (!part.empty() && !take(part)) break;
        if (answer_.done()) break;
        deadline_ = std::chrono::steady_clock::now() + silence_max;
        auto const came = read_on("a stream", Sent::no);
        if (!came && came.error().problem == Problem::timed_out)
            return fail(silent(target_, silence_max));
        VFMGR_CHECK(came);
    }
    return answer_.response();
}

}  // namespace

Client::Client(Target target) : target_(std::move(target)) {}

Result<Response> Client::send(Request const& request, std::chrono::seconds timeout) const {
    VFMGR_TRY(auto const text, request_text(request, target_, token_, Afterwards::closed));
    Exchange exchange(target_, std::chrono::steady_clock::now() + timeout,
                      AnswerReader::of(request));
    VFMGR_CHECK(exchange.open());
    return exchange.send(text);
}

Result<Response> Client::follow(Request const& request, std::chrono::seconds silence_max,
                                std::function<bool(std::string_view)> const& take) const {
    VFMGR_TRY(auto const text, request_text(request, target_, token_, Afterwards::closed));
    Exchange exchange(target_, std::chrono::steady_clock::now() + silence_max);
    VFMGR_CHECK(exchange.open());
    return exchange.follow(text, silence_max, take);
}

Result<std::string> fetch_ca(TlsTarget const& target, std::chrono::seconds timeout) {
    Target const server = target;
    Exchange exchange(server, std::chrono::steady_clock::now() + timeout);
    VFMGR_CHECK(exchange.open());
    VFMGR_TRY(Certificate const ca, pinned_ca(exchange.session(), target));
    return pem_of(ca.get());
}

}  // namespace vfmgr::http
