// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/os/descriptor.hpp"
#include "api/types/json.hpp"
#include "guest-tools/traffic/control.hpp"
#include "guest-tools/traffic/receiver.hpp"
#include "vfmgr/proof/interop/tcp_stream.hpp"

namespace vfmgr::stream {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds opening_wait{5};
// Once the sender has ended: how long to wait, after the last packet, for more on their way.
constexpr std::chrono::milliseconds quiet_time{500};
constexpr std::chrono::seconds tail_max{5};  // for a network that keeps delivering
// How often the control connection, the clock and `stop` are checked while packets keep coming.
constexpr std::chrono::milliseconds poll_interval{10};

// A run, from its acceptance to its summary.
class Reception {
  public:
    Reception(Control& control, Receiver& source, Opening const& opening,
              ReceiveEvents const& events)
        : control_(control),
          source_(source),
          opening_(opening),
          events_(events),
          tally_(run_number(opening.run), opening.packet_bytes, Steady::now()) {}

    Result<Summary> run(Deadline until, int stop) {
        auto next_second = Steady::now() + std::chrono::seconds(1);
        Deadline next_poll{};
        bool waited = false;
        while (!end_) {
            // The clock is read first: a delay before packets are taken must not look like quiet.
            auto const now = Steady::now();
            VFMGR_TRY(auto const taken, source_.take(tally_));
            tally_.taken_at(now);
            if (now >= next_second) {
                VFMGR_CHECK(source_.check());
                events_.second(tally_.interval(now, source_.lost()));
                next_second += std::chrono::seconds(1);
            }
            // Each poll costs two system calls, so polls are rare while packets come.
            if (gone_at_ || now >= next_poll || (taken == 0 && waited)) {
                poll_control(now, until, stop, taken);
                next_poll = now + poll_interval;
            }
            waited = taken == 0 && !end_;
            if (waited) VFMGR_CHECK(wait(std::min({next_second, until, quiet_at()}), stop));
        }
        return summary();
    }

  private:
    // Checks the sender's messages, the clock, and whether the user has stopped the test.
    void poll_control(Deadline now, Deadline until, int stop, std::size_t taken) {
        if (!gone_at_) read_control(now);
        if (is_readable(stop)) end_ = End::stopped;
        if (now >= until) end_ = End::time_over;
        bool const all = ending_ && tally_.received() >= ending_->packets;
        bool const quiet = taken == 0 && now >= quiet_at();
        if (gone_at_ && (all || quiet)) end_ = ending_ ? End::sent : End::sender_gone;
    }

    // Reads the sender's ending, or its disconnection: both follow its last packet.
    void read_control(Deadline now) {
        auto line = control_.line_now();
        if (line && !*line) return;
        gone_at_ = now;
        if (!line) return;
        if (auto const ending = read_ending(**line)) ending_ = *ending;
    }

    // Returns when to stop waiting for packets.
    [[nodiscard]] Deadline quiet_at() const {
        if (!gone_at_) return Deadline::max();
        return std::min(std::max(*gone_at_, tally_.last_at()) + quiet_time, *gone_at_ + tail_max);
    }

    Result<void> wait(Deadline deadline, int stop) {
        VFMGR_CHECK(source_.arm());
        VFMGR_TRY(auto const taken, source_.take(tally_));
        tally_.taken_at(Steady::now());
        if (taken > 0) return {};
        std::array const watched{source_.fd(), gone_at_ ? -1 : control_.fd(), stop};
        VFMGR_CHECK(await_readable(watched, deadline));
        return {};
    }

    Summary summary() {
        if (auto const rest = tally_.rest(source_.lost())) events_.second(*rest);
        auto made = tally_.summary(ending_);
        made.run = opening_.run;
        made.over = opening_.over;
        made.end = *end_;
        made.socket_lost = source_.lost();
        made.ring_packets = source_.ring_packets();
        made.ring = source_.ring_place();
        // Ignores a failure: the sender may have gone.
        static_cast<void>(control_.send(to_json_text(made)));
        return made;
    }

    Control& control_;
    Receiver& source_;
    Opening const& opening_;
    ReceiveEvents const& events_;
    Tally tally_;
    std::optional<Ending> ending_;
    std::optional<Deadline> gone_at_;  // when the sender ended, in either way
    std::optional<End> end_;
};

struct Met {
    Control control;
    Opening opening;
    std::unique_ptr<Receiver> source;
};

Result<Opening> receive_opening(Control& control, ReceiveOptions const& options, int stop) {
    VFMGR_TRY(auto const line, control.line(Steady::now() + opening_wait, stop));
    VFMGR_TRY(auto opening, read_opening(line));
    if (!options.over || *options.over == opening.over) return opening;
    return fail(Problem::unsupported,
                fmt::format("the receiver takes packets over {}, but the sender sends over {}",
                            enum_name(*options.over), enum_name(opening.over)),
                "give both ends the same --over");
}

// Accepts a sender that has connected, or sends it the reason of the refusal.
Result<Met> meet(FileDescriptor socket, ReceiveOptions const& options, int stop) {
    Control control(std::move(socket), "sender");
    auto const refuse = [&](Error const& error) {
        Acceptance const refusal{.refusal = error};
        static_cast<void>(control.send(to_json_text(refusal)));
        return fail(error);
    };
    auto opening = receive_opening(control, options, stop);
    if (!opening) return refuse(opening.error());
    auto source = Receiver::open(options, *opening);
    if (!source) return refuse(source.error());
    VFMGR_CHECK(control.send(to_json_text((*source)->acceptance())));
    return Met{std::move(control), std::move(*opening), std::move(*source)};
}

// Returns the first sender that is accepted. The listener is closed by then: a second sender's
// connection is refused at once.
Result<Met> await_sender(ReceiveOptions const& options, ReceiveEvents const& events, Deadline until,
                         int stop) {
    VFMGR_TRY(auto const listener, interop::listen_tcp({options.local, options.port, {}}));
    auto const port = interop::port_of(listener);
    events.ready(port);
    while (true) {
        VFMGR_TRY(auto const ready, await_readable(std::array{listener.get(), stop}, until));
        if (ready == Readiness::deadline_passed)
            return fail(
                Problem::timed_out,
                fmt::format("no sender connected to {} port {}", to_string(options.local), port),
                fmt::format("start on the other machine: vf-guest stream send --to {}, and "
                            "let TCP port {} through the firewalls between",
                            to_string(options.local), port));
        if (is_readable(stop)) return fail(stopped());
        FileDescriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            return fail({Problem::limit_exceeded,
                         "a sender connected, but no descriptor is left for it",
                         "raise the limit of open files (ulimit -n), or free memory",
                         {errno_cause("accept4", errno)}});
        if (!socket) continue;  // the sender has gone again
        auto met = meet(std::move(socket), options, stop);
        if (met) return met;
        if (is_readable(stop)) return fail(stopped());
        events.refused(met.error());
    }
}

}  // namespace

Result<Summary> receive(ReceiveOptions const& options, ReceiveEvents const& events, int stop) {
    if (options.over) VFMGR_CHECK(Receiver::check(options, *options.over));
    auto const until = options.time ? Steady::now() + *options.time : Deadline::max();
    VFMGR_TRY(auto met, await_sender(options, events, until, stop));
    events.begun(met.opening, met.control.peer(), met.source->ring_place());
    return Reception(met.control, *met.source, met.opening, events).run(until, stop);
}

}  // namespace vfmgr::stream
