// SPDX-License-Identifier: Apache-2.0
// The host's end of all RDMA tests: opens a session for a permit, answers while it runs, and
// returns the verdict when it is closed. Event-driven: one thread for all sessions, never busy.
// open(), close() and drop() from any thread; open() and close() may take seconds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "vfmgr/proof/host/host_session.hpp"
#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/proof/turns.hpp"

namespace vfmgr::verify {

class Responder {
  public:
    // Called when a session opens: checks that packets from the host to the permit's address reach
    // only the VF's MAC. (check_peer.hpp queries the kernel.)
    using CheckPeer = std::function<Result<void>(SessionPermit const&)>;

    // Without `open_cm`, streams of kind cm_ping are refused as unsupported.
    [[nodiscard]] static Result<std::unique_ptr<Responder>> start(ResponderLimits const& limits,
                                                                  CheckPeer check_peer,
                                                                  OpenCmStream open_cm = {});
    ~Responder();
    Responder(Responder const&) = delete;
    Responder& operator=(Responder const&) = delete;

    // For GuestAttachment.echo_port.
    [[nodiscard]] std::uint16_t echo_port() const { return limits_.echo_port; }

    // Replaces an unfinished session of the same attachment: the guest started again. Returns a
    // turn while others have all places; a client that asks again keeps its turn.
    [[nodiscard]] Result<OrTurn<SessionOffer>> open(SessionPermit const& permit,
                                                    SessionRequest const& request);
    // For an open session. Returns a turn while other streams use all places.
    [[nodiscard]] Result<OrTurn<StreamOffer>> open_stream(std::string const& session,
                                                          StreamRequest const& request);
    // Call before the session ends, which ends its streams too. Unknown ones count as ended.
    void close_stream(std::string const& session, std::string const& stream);
    // Returns the verdict, without times. Fails with not_found when the session's time is over.
    [[nodiscard]] Result<Verification> close(std::string const& session, GuestReport const& report);
    // Ends a session without a verdict: detached, or its VM has stopped. Unknown ones count as
    // ended.
    void drop(std::string const& session);
    [[nodiscard]] ResponderLoad load() const;

  private:
    struct EchoPlace {
        std::string ifname;
        IpAddress address;
        auto operator<=>(EchoPlace const&) const = default;
    };
    using Session = std::shared_ptr<HostSession>;
    // `end` is empty while the stream opens.
    struct Stream {
        StreamKind kind = StreamKind::one_sided;
        std::unique_ptr<StreamEnd> end{};
        Deadline until = Deadline::max();
    };
    // By session: one stream for each leaves places for others.
    using Streams = std::map<std::string, Stream>;
    struct Over {
        std::vector<std::string> sessions;
        std::vector<std::pair<std::string, std::string>> streams;  // by session and stream
    };

    Responder(ResponderLimits const& limits, CheckPeer check_peer, OpenCmStream open_cm,
              FileDescriptor wake);
    [[nodiscard]] static Error no_session(std::string const& session);
    [[nodiscard]] Session take(std::string const& session);
    [[nodiscard]] Result<OrTurn<Session>> reserve_stream(std::string const& session,
                                                         StreamRequest const& request);
    [[nodiscard]] Turns& turns_of(StreamKind kind);
    [[nodiscard]] Stream take_stream(Streams::iterator stream);
    [[nodiscard]] Result<std::unique_ptr<StreamEnd>> open_end(SessionPermit const& permit,
                                                              StreamRequest const& request) const;
    [[nodiscard]] Stream take_stream_of(std::string const& session);
    static void end_stream(Stream const& stream, HostSession& session);
    void drop_attachment(std::string const& attachment);
    [[nodiscard]] Result<std::optional<Turn>> reserve(SessionPermit const& permit);
    [[nodiscard]] Result<Session> open_reserved(SessionPermit const& permit,
                                                SessionRequest const& request);
    [[nodiscard]] Result<void> open_echo(SessionPermit const& permit);
    void forget_unused_echo();
    void run();
    [[nodiscard]] std::vector<int> watched() const;
    [[nodiscard]] Deadline first_end() const;
    void handle_datagrams(EchoPlace const& place, int fd);
    [[nodiscard]] HostSession* session_of(EchoPlace const& place, EchoDatagram const& question,
                                          IpAddress const& sender);
    [[nodiscard]] Over find_over() const;

    ResponderLimits const limits_;
    CheckPeer const check_peer_;
    OpenCmStream const open_cm_;
    FileDescriptor const wake_;
    mutable std::mutex mutex_;  // guards what follows, and every session in sessions_
    std::map<std::string, Session> sessions_;
    Streams streams_;
    std::map<EchoPlace, FileDescriptor> echoes_;
    std::map<std::string, EchoPlace> opening_;  // by attachment: reserved, not in sessions_ yet
    Turns session_turns_;                       // by attachment
    Turns stream_turns_, echo_turns_;           // by session
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace vfmgr::verify
