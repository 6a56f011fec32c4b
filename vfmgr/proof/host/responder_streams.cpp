// SPDX-License-Identifier: Apache-2.0
// The responder's streams: they take turns, run, and end.
#include <algorithm>

#include "api/os/descriptor.hpp"
#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/proof/host/host_transfers.hpp"
#include "vfmgr/proof/host/responder.hpp"

namespace vfmgr::verify {

using Steady = std::chrono::steady_clock;

Result<OrTurn<StreamOffer>> Responder::open_stream(std::string const& session,
                                                   StreamRequest const& request) {
    VFMGR_TRY(auto const owner_or_turn, reserve_stream(session, request));
    if (auto const* const turn = std::get_if<Turn>(&owner_or_turn)) return *turn;
    // Declared before the lock: a dropped stream waits for its thread after the lock is released.
    auto opened = open_end(std::get<Session>(owner_or_turn)->permit(), request);
    std::lock_guard const lock(mutex_);
    auto const place = streams_.find(session);
    if (place == streams_.end())  // its session has ended meanwhile
        return fail(opened ? no_session(session) : std::move(opened).error());
    if (!opened) {
        static_cast<void>(take_stream(place));
        return fail(std::move(opened).error());
    }
    auto offer = (*opened)->offer();
    if (offer.seconds > 0)
        place->second.until = Steady::now() + std::chrono::seconds(offer.seconds);
    place->second.end = std::move(*opened);
    raise_event(wake_);  // the stream has a deadline of its own
    return offer;
}

Result<std::unique_ptr<StreamEnd>> Responder::open_end(SessionPermit const& permit,
                                                       StreamRequest const& request) const {
    if (is_transfer(request.kind)) return open_transfers(permit, request, limits_);
    auto limits = limits_;
    if (is_echo(request.kind))
        limits.stream_seconds_max = std::min(limits.stream_seconds_max, limits.echo_seconds_max);
    if (request.kind != StreamKind::cm_ping) return HostStream::open(permit, request, limits);
    if (open_cm_) return open_cm_(permit, request, limits_);
    return fail(Problem::unsupported, "this responder does not serve RDMA CM",
                "use a vfmgrd or vf-guest serve that does");
}

// Echoes spin and take a whole CPU, so they have turns of their own.
Turns& Responder::turns_of(StreamKind kind) {
    return is_echo(kind) ? echo_turns_ : stream_turns_;
}

Result<OrTurn<Responder::Session>> Responder::reserve_stream(std::string const& session,
                                                             StreamRequest const& request) {
    std::lock_guard const lock(mutex_);
    auto const owner = sessions_.find(session);
    if (owner == sessions_.end()) return fail(no_session(session));
    if (streams_.contains(session))
        return fail(Problem::limit_exceeded, "the session already has a stream",
                    "end that stream before you open another");
    VFMGR_TRY(auto const turn,
              turns_of(request.kind).take(sharer(owner->second->permit()), session, Steady::now()));
    if (turn) return *turn;
    streams_.emplace(session, Stream{request.kind});
    return owner->second;
}

// Called under the lock. The caller waits for the stream's end after releasing it.
Responder::Stream Responder::take_stream(Streams::iterator stream) {
    auto taken = streams_.extract(stream);
    turns_of(taken.mapped().kind).end(taken.key(), Steady::now());
    return std::move(taken.mapped());
}

void Responder::close_stream(std::string const& session, std::string const& stream) {
    Stream ended;
    Session owner;
    {
        std::lock_guard const lock(mutex_);
        auto const found = streams_.find(session);
        if (found == streams_.end() || !found->second.end ||
            found->second.end->offer().stream != stream)
            return;
        owner = sessions_.at(session);
        ended = take_stream(found);
    }
    end_stream(ended, *owner);
}

// Also removes the session from the queues.
Responder::Stream Responder::take_stream_of(std::string const& session) {
    auto const found = streams_.find(session);
    auto taken = found == streams_.end() ? Stream() : take_stream(found);
    stream_turns_.end(session, Steady::now());
    echo_turns_.end(session, Steady::now());
    return taken;
}

// Called without the lock, because it joins the stream's thread.
void Responder::end_stream(Stream const& stream, HostSession& session) {
    if (!stream.end) return;
    session.add(stream.kind, stream.end->stop());
}

}  // namespace vfmgr::verify
