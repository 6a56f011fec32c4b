// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/grpc/watch_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace vfmgr::fleet {
namespace {

using WatchClock = std::chrono::steady_clock;

template <class Tag>
void* as_pointer(Tag tag) {
    return reinterpret_cast<void*>(tag);
}

}  // namespace

WatchStream::WatchStream(Connection connection, EtcdPaces const& paces, WireKeys keys)
    : connection_(std::move(connection)), paces_(paces), keys_(std::move(keys)) {
    demand_leader(context_);
}

WatchStream::~WatchStream() {
    context_.TryCancel();
    if (stream_ && !finishing_) stream_->Finish(&status_, as_pointer(Tag::finished));
    queue_.Shutdown();
    void* which = nullptr;
    bool fine = false;
    while (queue_.Next(&which, &fine)) {
    }
}

Result<void> WatchStream::begin(WatchFrom const& from, Deadline deadline) {
    create_ = to_wire(from, keys_);
    stub_ = pb::Watch::NewStub(connection_.channel);
    stream_ = stub_->AsyncWatch(&context_, &queue_, as_pointer(Tag::started));
    alive();
    while (!created_ && !ended_)
        if (!wait(deadline))
            return fail(error_of(call(), {grpc::StatusCode::DEADLINE_EXCEEDED,
                                          "the watch was not created in time"}));
    if (ended_) return fail(*ended_);
    return {};
}

Result<std::optional<WatchBatch>> WatchStream::next(Deadline deadline) {
    for (bool in_time = true;; in_time = wait(deadline)) {
        if (!batches_.empty()) {
            auto batch = std::move(batches_.front());
            batches_.erase(batches_.begin());
            return batch;
        }
        if (ended_) return fail(*ended_);
        if (!in_time) return std::nullopt;
    }
}

void WatchStream::end() {
    context_.TryCancel();
}

bool WatchStream::wait(Deadline deadline) {
    void* which = nullptr;
    bool fine = false;
    switch (queue_.AsyncNext(&which, &fine, grpc_time(std::min(deadline, due_)))) {
        case grpc::CompletionQueue::GOT_EVENT:
            happened(static_cast<Tag>(reinterpret_cast<std::uintptr_t>(which)), fine);
            return true;
        case grpc::CompletionQueue::TIMEOUT:
            if (WatchClock::now() >= due_) silent();
            return WatchClock::now() < deadline;
        case grpc::CompletionQueue::SHUTDOWN:
            break;
    }
    return false;
}

void WatchStream::happened(Tag which, bool fine) {
    if (which == Tag::finished) {
        auto const closed = GrpcAnswer{grpc::StatusCode::UNAVAILABLE, "etcd closed the watch"};
        return finish(error_of(call(), status_.ok() ? closed : answer_of(status_)));
    }
    if (!fine) {  // the stream is over; its status says why
        if (!finishing_) stream_->Finish(&status_, as_pointer(Tag::finished));
        finishing_ = true;
        return;
    }
    if (which == Tag::started) stream_->Write(create_, as_pointer(Tag::written));
    if (which == Tag::written) writing_ = false;
    if (which == Tag::read) received();
    if (which == Tag::started || which == Tag::read)
        stream_->Read(&response_, as_pointer(Tag::read));
}

void WatchStream::received() {
    alive();
    if (response_.canceled() || response_.compact_revision() > 0) return cancelled();
    created_ = created_ || response_.created();
    for (auto const& event : response_.events()) part_.changes.push_back(keys_.change(event));
    if (response_.fragment() || response_.created()) return;
    part_.revision =
        part_.changes.empty() ? response_.header().revision() : part_.changes.back().revision;
    batches_.push_back(std::exchange(part_, {}));
}

void WatchStream::cancelled() {
    if (response_.compact_revision() > 0)
        return finish(
            compacted(fmt::format("etcd at {} has compacted the changes before revision "
                                  "{}, and the watch was behind it",
                                  connection_.endpoint, response_.compact_revision()),
                      {"etcd Watch at " + connection_.endpoint, "", response_.cancel_reason()}));
    finish(error_of(call(), {grpc::StatusCode::CANCELLED, response_.cancel_reason()}));
}

void WatchStream::alive() {
    due_ = WatchClock::now() + paces_.watch_silence;
    asked_ = false;
}

// Nothing has come for as long as is allowed. A member may hold a connection open while it is
// paused, or cut off from the others (etcd-io/etcd#17611).
void WatchStream::silent() {
    if (asked_ || writing_ || finishing_)
        return finish({Problem::unavailable,
                       fmt::format("the watch on etcd at {} has stalled", connection_.endpoint),
                       "etcdctl endpoint status --cluster",
                       {{"etcd Watch at " + connection_.endpoint, "", "no sign of life"}}});
    static_cast<void>(progress_.mutable_progress_request());
    stream_->Write(progress_, as_pointer(Tag::written));
    writing_ = asked_ = true;
    due_ = WatchClock::now() + paces_.watch_answer;
}

void WatchStream::finish(Error error) {
    if (!ended_) ended_ = std::move(error);
    context_.TryCancel();
}

}  // namespace vfmgr::fleet
