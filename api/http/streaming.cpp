// SPDX-License-Identifier: Apache-2.0
#include "api/http/streaming.hpp"

#include <fmt/format.h>

namespace vfmgr::http {

Streaming::Streaming(std::shared_ptr<Stream const> stream, Coding coding,
                     std::chrono::milliseconds patience, Seams seams)
    : stream_(std::move(stream)), coding_(coding), patience_(patience), seams_(std::move(seams)) {}

void Streaming::begin(std::function<void()> wake) {
    stream_->begin(std::move(wake));
    flow(Stream::Due::more);
}

void Streaming::woken() {
    if (phase_ == Phase::waiting) flow(Stream::Due::more);
}

bool Streaming::expired() {
    if (phase_ != Phase::waiting) return false;
    flow(Stream::Due::beat);
    return true;
}

void Streaming::finish() {
    finishing_ = true;
    if (phase_ == Phase::waiting) end();
}

void Streaming::flow(Stream::Due due) {
    auto frames = finishing_ ? std::nullopt : stream_->next(due);
    if (!frames) return end();
    frames_ = std::move(*frames);
    if (!frames_.empty()) return write();
    // What is not for this reader puts no heartbeat off.
    bool const waits = std::exchange(phase_, Phase::waiting) == Phase::waiting;
    if (!waits || due == Stream::Due::beat) seams_.arm(stream_->heartbeat);
}

void Streaming::write() {
    phase_ = Phase::writing;
    seams_.arm(patience_);
    std::size_t size = 0;
    for (auto const& frame : frames_) size += frame->size();
    size_line_ = fmt::format("{:x}\r\n", size);
    bool const chunked = coding_ == Coding::chunked;
    std::vector<std::string_view> parts;
    if (chunked) parts.emplace_back(size_line_);
    for (auto const& frame : frames_) parts.emplace_back(*frame);
    if (chunked) parts.emplace_back("\r\n");
    seams_.write(parts, [this] { flow(Stream::Due::more); });
}

void Streaming::end() {
    phase_ = Phase::ending;
    stream_.reset();
    if (coding_ == Coding::until_close) return seams_.end();
    seams_.arm(patience_);
    seams_.write({"0\r\n\r\n"}, seams_.end);
}

}  // namespace vfmgr::http
