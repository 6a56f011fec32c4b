// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/host/responder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "vfmgr/proof/host/host_transfers.hpp"

namespace vfmgr::verify {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t datagram_bytes_max = 65536;
constexpr int datagrams_in_a_row_max = 64;  // then the other sessions get their turn

Result<void> match(SessionPermit const& permit, SessionRequest const& request) {
    auto const refuse = [&](std::string_view what) {
        return fail(Problem::forbidden,
                    fmt::format("the request's {} is not that of run {}", what, permit.run),
                    "read the configuration again and use its run and nonce");
    };
    if (request.attachment != permit.attachment) return refuse("attachment");
    if (request.run != permit.run) return refuse("run");
    if (permit.nonce.empty() || request.nonce != permit.nonce) return refuse("nonce");
    if (permit.rdma == RdmaMode::none) return {};
    return require_at_vf(permit, request.guest);
}

TurnLimits session_turns(ResponderLimits const& limits) {
    return {.what = "RDMA sessions",
            .places = limits.sessions_max,
            .places_each = limits.sessions_each_max};
}

TurnLimits stream_turns(ResponderLimits const& limits) {
    return {.what = "streams",
            .places = limits.streams_max,
            .places_each = limits.streams_each_max,
            .usual = std::chrono::seconds(1)};
}

TurnLimits echo_turns(ResponderLimits const& limits) {
    auto turns = stream_turns(limits);
    turns.what = "streams with answers";
    turns.places = turns.places_each = limits.echoes_max;
    turns.allowance = {std::chrono::seconds(limits.echo_saved_seconds_max), limits.echo_share};
    return turns;
}

}  // namespace

Error Responder::no_session(std::string const& session) {
    return {Problem::not_found, fmt::format("there is no session {}", session),
            "verify again: the session may have timed out"};
}

Result<std::unique_ptr<Responder>> Responder::start(ResponderLimits const& limits,
                                                    CheckPeer check_peer, OpenCmStream open_cm) {
    VFMGR_TRY(auto wake, make_event());
    return std::unique_ptr<Responder>(
        new Responder(limits, std::move(check_peer), std::move(open_cm), std::move(wake)));
}

Responder::Responder(ResponderLimits const& limits, CheckPeer check_peer, OpenCmStream open_cm,
                     FileDescriptor wake)
    : limits_(limits),
      check_peer_(std::move(check_peer)),
      open_cm_(std::move(open_cm)),
      wake_(std::move(wake)),
      session_turns_(session_turns(limits)),
      stream_turns_(stream_turns(limits)),
      echo_turns_(echo_turns(limits)) {
    thread_ = std::thread([this] { run(); });
}

Responder::~Responder() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
    }
    raise_event(wake_);
    thread_.join();
}

ResponderLoad Responder::load() const {
    std::lock_guard const lock(mutex_);
    ResponderLoad load{.sessions = sessions_.size(),
                       .sessions_max = limits_.sessions_max,
                       .streams = streams_.size()};
    for (auto const* const turns : {&session_turns_, &stream_turns_, &echo_turns_})
        load.waiting += turns->waiting();
    return load;
}

// Only one session of an attachment opens at a time, because it may have only one.
Result<std::optional<Turn>> Responder::reserve(SessionPermit const& permit) {
    std::lock_guard const lock(mutex_);
    if (opening_.contains(permit.attachment)) return Turn{1, 1, true};
    VFMGR_TRY(auto const turn,
              session_turns_.take(sharer(permit), permit.attachment, Steady::now()));
    if (turn) return turn;
    opening_[permit.attachment] = {permit.host_netdev, permit.host_address};
    return std::nullopt;
}

Result<OrTurn<SessionOffer>> Responder::open(SessionPermit const& permit,
                                             SessionRequest const& request) {
    VFMGR_CHECK(match(permit, request));
    VFMGR_TRY(auto const turn, reserve(permit));
    if (turn) return *turn;
    drop_attachment(permit.attachment);
    auto opened = open_reserved(permit, request);
    std::lock_guard const lock(mutex_);
    opening_.erase(permit.attachment);
    raise_event(wake_);
    if (!opened) {
        session_turns_.end(permit.attachment, Steady::now());
        return fail(std::move(opened).error());
    }
    auto offer = (*opened)->offer();
    sessions_.emplace(offer.session, std::move(*opened));
    return offer;
}

Result<Responder::Session> Responder::open_reserved(SessionPermit const& permit,
                                                    SessionRequest const& request) {
    VFMGR_CHECK(check_peer_(permit));
    {
        std::lock_guard const lock(mutex_);
        VFMGR_CHECK(open_echo(permit));
    }
    return HostSession::open(permit, request, limits_);
}

// Ends the session's streams too.
Responder::Session Responder::take(std::string const& session) {
    Session taken;
    Stream stream;
    {
        std::lock_guard const lock(mutex_);
        auto const found = sessions_.find(session);
        if (found == sessions_.end()) return nullptr;
        taken = std::move(found->second);
        sessions_.erase(found);
        stream = take_stream_of(session);
        auto const& attachment = taken->permit().attachment;
        // A session that is opening for the same attachment keeps the place.
        if (!opening_.contains(attachment)) session_turns_.end(attachment, Steady::now());
    }
    raise_event(wake_);
    end_stream(stream, *taken);
    return taken;
}

Result<Verification> Responder::close(std::string const& session, GuestReport const& report) {
    auto const taken = take(session);
    if (!taken) return fail(no_session(session));
    return judge(taken->permit(), taken->finish(), report);
}

void Responder::drop(std::string const& session) {
    if (auto const dropped = take(session)) static_cast<void>(dropped->finish());
}

void Responder::drop_attachment(std::string const& attachment) {
    std::vector<std::string> ids;
    {
        std::lock_guard const lock(mutex_);
        for (auto const& [id, session] : sessions_)
            if (session->permit().attachment == attachment) ids.push_back(id);
    }
    for (auto const& id : ids) drop(id);
}

// --- streams: they take turns, run, and end ---------------------------------------------------

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

// --- the thread ---------------------------------------------------------------------------------

Result<void> Responder::open_echo(SessionPermit const& permit) {
    EchoPlace const place{permit.host_netdev, permit.host_address};
    if (echoes_.contains(place)) return {};
    VFMGR_TRY(auto fd, open_socket({place.address, limits_.echo_port, place.ifname}));
    echoes_.emplace(place, std::move(fd));
    return {};
}

// Closes a host interface's socket with its last session, because the interface may go next. A
// session that is opening there keeps the socket: it uses it already, but is not in sessions_ yet.
// Only the thread that waits for datagrams calls this: a socket closed by another thread during the
// wait keeps its port.
void Responder::forget_unused_echo() {
    std::erase_if(echoes_, [&](auto const& echo) {
        bool const opens = std::ranges::any_of(
            opening_, [&](auto const& entry) { return entry.second == echo.first; });
        return !opens && std::ranges::none_of(sessions_, [&](auto const& entry) {
            auto const& permit = entry.second->permit();
            return EchoPlace{permit.host_netdev, permit.host_address} == echo.first;
        });
    });
}

std::vector<int> Responder::watched() const {
    std::vector<int> fds{wake_.get()};
    for (auto const& [place, fd] : echoes_) fds.push_back(fd.get());
    for (auto const& [id, session] : sessions_)
        for (auto const fd : session->watched()) fds.push_back(fd);
    return fds;
}

Deadline Responder::first_end() const {
    auto next = Steady::now() + std::chrono::hours(1);
    for (auto const& [id, session] : sessions_) next = std::min(next, session->deadline());
    for (auto const& [id, stream] : streams_) next = std::min(next, stream.until);
    return next;
}

// Finds sessions and streams whose time is over: a stream frees its place for the next even if its
// guest never closes it.
Responder::Over Responder::find_over() const {
    Over over;
    auto const now = Steady::now();
    for (auto const& [id, session] : sessions_)
        if (session->deadline() <= now) over.sessions.push_back(id);
    for (auto const& [session, stream] : streams_)
        if (stream.until <= now) over.streams.emplace_back(session, stream.end->offer().stream);
    return over;
}

void Responder::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        forget_unused_echo();
        auto const fds = watched();
        auto const end = first_end();
        lock.unlock();
        static_cast<void>(await_readable(fds, end));
        lock.lock();
        // Handles all that there may be: sockets and sessions come and go during the wait, and
        // their descriptors' numbers are used again.
        take_event(wake_);
        for (auto const& [place, fd] : echoes_)
            if (is_readable(fd.get())) handle_datagrams(place, fd.get());
        for (auto const& [id, session] : sessions_) session->on_events();
        auto const over = find_over();
        lock.unlock();
        for (auto const& [session, stream] : over.streams) close_stream(session, stream);
        // Without a report there is no verdict: a client that waits for one has a deadline of its
        // own.
        for (auto const& id : over.sessions) drop(id);
        lock.lock();
    }
}

HostSession* Responder::session_of(EchoPlace const& place, EchoDatagram const& question,
                                   IpAddress const& sender) {
    for (auto const& [id, session] : sessions_) {
        auto const& permit = session->permit();
        if (permit.nonce == question.nonce && permit.peer_address == sender &&
            EchoPlace{permit.host_netdev, permit.host_address} == place)
            return session.get();
    }
    return nullptr;
}

void Responder::handle_datagrams(EchoPlace const& place, int fd) {
    std::vector<std::byte> room(datagram_bytes_max);
    for (int i = 0; i < datagrams_in_a_row_max; ++i) {
        SocketAddress from;
        auto* const sender = from.room();
        auto const got = ::recvfrom(fd, room.data(), room.size(), 0, sender, &from.length);
        if (got < 0) return;
        auto const question = parse_question(std::span(room).first(static_cast<std::size_t>(got)));
        auto const address = from.address();
        if (!question || !address) continue;
        auto* const session = session_of(place, *question, *address);
        if (!session) continue;
        auto const answer = session->answer(*question);
        if (!answer) continue;
        if (::sendto(fd, answer->data(), answer->size(), 0, from.get(), from.length) < 0)
            session->answer_refused(*question, errno);
    }
}

}  // namespace vfmgr::verify
