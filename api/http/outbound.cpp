// SPDX-License-Identifier: Apache-2.0
#include "api/http/outbound.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "api/http/connecting.hpp"
#include "api/http/listening.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

void Outbound::open(std::function<void()> opened, Failed failed) {
    if (phase_ == Phase::closed) return;
    opened_ = std::move(opened);
    failed_ = std::move(failed);
    resolver_.find(target_, [self = shared_from_this()](Resolved const& resolved) {
        if (self->phase_ == Phase::closed) return;
        if (resolved.error != 0 || resolved.addresses.empty())
            return self->fail_with(has_no_address(self->target_, resolved.error));
        self->addresses_.assign(resolved.addresses.rbegin(), resolved.addresses.rend());
        self->try_next();
    });
}

void Outbound::try_next() {
    auto const address = addresses_.back();
    addresses_.pop_back();
    auto const refused = [this](Error error) {
        if (addresses_.empty()) return fail_with(std::move(error));
        try_next();
    };
    auto fd = begin_to_connect(address, target_);
    if (!fd) return refused(std::move(fd).error());
    auto socket = std::make_unique<PeerSocket>(io_);
    if (auto const opened = socket->open(std::move(*fd), tls_.get()); !opened)
        return refused(opened.error());
    if (socket_) socket_->close();
    socket_ = std::move(socket);
    socket_->watch(PeerSocket::Plain::wait_write,
                   [self = shared_from_this(), attempt = ++attempts_] {
                       self->on_connected(attempt);
                       return false;
                   });
}

void Outbound::on_connected(std::uint64_t attempt) {
    if (phase_ != Phase::connecting || attempt != attempts_) return;
    auto done = connected(socket_->fd(), target_);
    if (!done && !addresses_.empty()) return try_next();
    if (done) done = expect_host(socket_->session(), target_);
    if (!done) return fail_with(std::move(done).error());
    phase_ = Phase::shaking_hands;
    socket_->handshake(PeerSocket::As::client, [self = shared_from_this()](ErrorCode failed) {
        self->on_handshake(failed);
    });
}

void Outbound::on_handshake(ErrorCode failed) {
    if (phase_ == Phase::closed) return;
    if (failed) return on_cut(failed);
    if (auto good = check_pins(socket_->session(), target_); !good)
        return fail_with(std::move(good).error());
    phase_ = Phase::idle;
    std::exchange(opened_, nullptr)();
    read();
}

bool Outbound::usable() {
    return phase_ == Phase::idle && peer_state(socket_->fd()) == PeerState::quiet;
}

void Outbound::ask(Question question) {
    question_ = std::move(question);
    answer_.emplace(question_.of);
    phase_ = Phase::asking;
    begun_ = false;
    write();
    read();
}

void Outbound::write() {
    writing_ = Writing::under_way;
    socket_->with_stream([this](auto& stream) {
        asio::async_write(
            stream, asio::buffer(*question_.text),
            // A server that refuses early answers and stops reading: its answer counts, so a failed
            // write ends nothing.
            [self = shared_from_this(), text = question_.text](ErrorCode error, std::size_t size) {
                // TLS decrypts whole records only: of none, the server has read nothing.
                self->writing_ = !error      ? Writing::done
                                 : size == 0 ? Writing::failed_at_once
                                             : Writing::failed;
            });
    });
}

// Always reads, even while nothing is due: the end of an idle connection is noticed, and an early
// answer too.
void Outbound::read() {
    if (reading_ || paused_ || phase_ == Phase::closed) return;
    reading_ = true;
    socket_->with_stream([this](auto& stream) {
        stream.async_read_some(asio::buffer(part_),
                               [self = shared_from_this()](ErrorCode error, std::size_t size) {
                                   self->reading_ = false;
                                   if (self->phase_ != Phase::closed) self->on_read(error, size);
                               });
    });
}

void Outbound::on_read(ErrorCode error, std::size_t size) {
    if (phase_ == Phase::idle)  // nothing was asked
        return on_cut(error ? error : asio::error::make_error_code(asio::error::invalid_argument));
    std::optional<Unreadable> fault;
    if (!error)
        fault = answer_->read({part_.data(), size});
    else if (error == asio::error::eof)
        fault = answer_->end();
    else
        return on_cut(error);
    if (fault) return fail_with(unreadable(target_, *fault, sent()));
    take_answer();
}

void Outbound::take_answer() {
    if (!answer_->has_header()) return read();
    bool const streams = question_.take && answer_->status() / 100 == 2;
    if (streams && !begun_) {
        answer_->take_as_it_comes();
        begun_ = true;
        if (question_.begun) question_.begun(answer_->response());
        if (phase_ == Phase::closed) return;
    }
    if (auto const fault = answer_->read({})) return fail_with(unreadable(target_, *fault, sent()));
    if (streams) {
        auto const part = answer_->take_body();
        if (!part.empty()) question_.take(part);
        if (phase_ == Phase::closed) return;
    }
    if (answer_->done()) return finish_answer();
    read();
}

void Outbound::finish_answer() {
    auto response = answer_->response();
    bool const goes_on =
        answer_->keeps_connection() && writing_ == Writing::done && !question_.take;
    auto const answered = std::exchange(question_.answered, nullptr);
    question_ = {};
    answer_.reset();
    phase_ = Phase::idle;
    if (goes_on)
        read();
    else
        close();
    answered(std::move(response));
}

void Outbound::resume() {
    if (!std::exchange(paused_, false)) return;
    if (phase_ == Phase::asking) read();
}

Sent Outbound::sent() const {
    bool const none = phase_ != Phase::asking || writing_ == Writing::failed_at_once;
    return none ? Sent::no : question_.if_read;
}

void Outbound::on_cut(ErrorCode error) {
    bool const asking = phase_ == Phase::asking;
    auto const* const doing = !asking ? "the TLS handshake" : begun_ ? "a stream" : "the answer";
    fail_with(ended_during(target_, socket_->session(), error, doing, begun_ ? Sent::no : sent()));
}

void Outbound::fail_with(Error error) {
    if (phase_ == Phase::closed) return;
    bool const none = phase_ != Phase::asking || writing_ == Writing::failed_at_once;
    Failure failure{std::move(error), none ? Sent::no : Sent::maybe, answer_ && answer_->started()};
    auto const failed = std::exchange(failed_, nullptr);
    close();
    if (failed) failed(std::move(failure));
}

Error Outbound::late() const {
    switch (phase_) {
        case Phase::connecting:
            return not_accepted_in_time(target_);
        case Phase::shaking_hands:
            return not_in_time(target_, "the TLS handshake", Sent::no);
        case Phase::idle:
        case Phase::asking:
        case Phase::closed:
            break;
    }
    return not_in_time(target_, writing_ == Writing::under_way ? "the request" : "the answer",
                       sent());
}

void Outbound::close() {
    if (phase_ == Phase::closed) return;
    phase_ = Phase::closed;
    if (socket_) socket_->close();
    opened_ = nullptr;
    failed_ = nullptr;
    question_.answered = nullptr;
    question_.begun = nullptr;
    question_.take = nullptr;
}

}  // namespace vfmgr::http
