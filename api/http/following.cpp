// SPDX-License-Identifier: Apache-2.0
#include "api/http/following.hpp"

#include <fmt/format.h>

#include "api/http/connecting.hpp"

namespace vfmgr::http {

using ErrorCode = boost::system::error_code;

void Streams::begin(Stream const& stream) {
    if (stopped_) return finish(stream, fail(client_stops(stream->target, Sent::no)));
    if (followed_.size() >= settings_.streams_max)
        return finish(stream, fail(Problem::unavailable,
                                   fmt::format("{} streams are followed already, {} can't be",
                                               followed_.size(), describe(stream->target)),
                                   "try again when one of them has ended"));
    auto tls = contexts_.of(stream->target);
    if (!tls) return finish(stream, fail(std::move(tls).error()));
    followed_.insert(stream);
    stream->silence.emplace(io_);
    ++numbers_.streams;
    ++numbers_.opened;
    stream->connection =
        std::make_shared<Outbound>(io_, resolver_, stream->target, std::move(*tls));
    arm(stream);
    stream->connection->open([this, stream] { ask(stream); },
                             [this, stream](Outbound::Failure failure) {
                                 finish(stream, fail(std::move(failure.error)));
                             });
}

void Streams::ask(Stream const& stream) {
    stream->connection->ask(
        {.text = stream->text,
         .of = AnswerReader::Of::get,
         .if_read = Sent::no,
         .answered = [this, stream](Response response) { finish(stream, std::move(response)); },
         .begun =
             [this, stream](Response response) {
                 if (stream->calls.begun)
                     stream->call([&] { stream->calls.begun(std::move(response)); });
                 apply_pause(stream);
             },
         .take =
             [this, stream](std::string_view part) {
                 stream->call([&] { stream->calls.take(part); });
                 apply_pause(stream);
             }});
}

void Streams::arm(Stream const& stream) {
    stream->silence->expires_after(stream->silence_max);
    stream->silence->async_wait([this, stream](ErrorCode cancelled) {
        if (cancelled || stream->paused || !stream->connection) return;
        finish(stream, fail(silent(stream->target, stream->silence_max)));
    });
}

// A stream that is not read is not silent.
void Streams::apply_pause(Stream const& stream) {
    if (!stream->connection) return;
    if (stream->paused) {
        stream->silence->cancel();
        stream->connection->pause();
    } else {
        arm(stream);
        stream->connection->resume();
    }
}

void Streams::finish(Stream const& stream, Result<Response> result) {
    forget(stream);
    if (stream->calls.ended) stream->call([&] { stream->calls.ended(std::move(result)); });
    stream->over = true;
}

void Streams::end(Stream const& stream) {
    forget(stream);
    stream->calls = {};  // what the callbacks hold goes with them
}

void Streams::forget(Stream const& stream) {
    stream->silence.reset();  // the handle may outlive the pool, and a timer may not
    if (auto const connection = std::exchange(stream->connection, nullptr)) connection->close();
    if (followed_.erase(stream) > 0) --numbers_.streams;
}

void Streams::stop() {
    stopped_ = true;
    while (!followed_.empty()) {
        auto const stream = *followed_.begin();
        finish(stream, fail(client_stops(stream->target, Sent::no)));
    }
}

Followed& Followed::operator=(Followed&& other) noexcept {
    if (this == &other) return *this;
    end();
    following_ = std::move(other.following_);
    return *this;
}

Followed::~Followed() {
    end();
}

void Followed::end() {
    auto const stream = std::exchange(following_, nullptr);
    if (!stream) return;
    stream->over = true;
    // On the io thread the callback that runs is the one that ends it.
    if (std::this_thread::get_id() != stream->io_thread) {
        std::lock_guard const no_call_runs(stream->calling);
    }
    stream->mailbox->post([stream] { stream->streams.end(stream); });
}

void Followed::pause() const {
    if (!following_ || following_->paused.exchange(true)) return;
    following_->mailbox->post([stream = following_] { stream->streams.apply_pause(stream); });
}

void Followed::resume() const {
    if (!following_ || !following_->paused.exchange(false)) return;
    following_->mailbox->post([stream = following_] { stream->streams.apply_pause(stream); });
}

}  // namespace vfmgr::http
