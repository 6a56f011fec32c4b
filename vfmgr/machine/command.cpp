// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "api/os/descriptor.hpp"
#include "api/os/process.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::size_t output_bytes_max = 1 << 20;
constexpr std::chrono::seconds kill_time_max{2};  // for a killed program to end

// Children that did not end after SIGKILL: they hang in the kernel, or run as another user. Later
// calls reap those that have ended.
class Lingering {
  public:
    void add(pid_t child) {
        std::lock_guard const lock(mutex_);
        children_.push_back(child);
    }
    void reap_ended() {
        std::lock_guard const lock(mutex_);
        std::erase_if(children_,
                      [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; });
    }

  private:
    std::mutex mutex_;
    std::vector<pid_t> children_;
};

struct Pipe {
    FileDescriptor from, to;

    static Pipe make() {
        std::array<int, 2> ends{-1, -1};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
        return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
    }
};

// Keeps PATH and whatever else a program needs, but not the caller's language.
std::vector<std::string> environment() {
    std::vector<std::string> kept{"LC_ALL=C", "SYSTEMD_PAGER="};
    for (char** variable = environ; *variable; ++variable) {
        std::string_view const text = *variable;
        if (!text.starts_with("LC_") && !text.starts_with("LANG")) kept.emplace_back(text);
    }
    return kept;
}

// Returns the child, or an errno.
tl::expected<pid_t, int> start(std::vector<std::string> const& words, Pipe const& out,
                               Pipe const& err) {
    FileDescriptor const nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing) return tl::unexpected(errno);
    return spawn({.arguments = words,
                  .descriptors = {{nothing.get(), STDIN_FILENO},
                                  {out.to.get(), STDOUT_FILENO},
                                  {err.to.get(), STDERR_FILENO}},
                  .environment = environment()});
}

// Returns false at the end of the stream.
bool take(int from, std::string& into) {
    std::array<char, 1 << 14> room;
    auto const got = ::read(from, room.data(), room.size());
    if (got < 0) return errno == EINTR;
    into.append(room.data(), std::min(static_cast<std::size_t>(got),
                                      output_bytes_max - std::min(output_bytes_max, into.size())));
    return got > 0;
}

// Reads both streams to their ends; returns false at the deadline.
bool listen(Pipe const& out, Pipe const& err, CommandFact& fact, Deadline deadline) {
    std::array streams{out.from.get(), err.from.get()};
    std::array<std::string*, 2> const texts{&fact.out, &fact.err};
    while (streams[0] >= 0 || streams[1] >= 0) {
        auto const ready = await_readable(streams, deadline);
        if (!ready || *ready == Readiness::deadline_passed) return false;
        for (std::size_t i = 0; i < streams.size(); ++i)
            if (is_readable(streams[i]) && !take(streams[i], *texts[i])) streams[i] = -1;
    }
    return true;
}

}  // namespace

CommandFact run_command(std::vector<std::string> const& words, Deadline deadline) {
    static Lingering lingering;
    lingering.reap_ended();
    CommandFact fact;
    auto out = Pipe::make();
    auto err = Pipe::make();
    auto const started = out.to && err.to ? start(words, out, err) : tl::unexpected(errno);
    if (!started) {
        fact.error = started.error();
        return fact;
    }
    pid_t const child = *started;
    out.to.reset();
    err.to.reset();
    bool const in_time = listen(out, err, fact, deadline) && await_end_of(child, deadline);
    if (!in_time) {
        fact.error = ETIMEDOUT;
        ::kill(child, SIGKILL);
        if (!await_end_of(child, std::chrono::steady_clock::now() + kill_time_max)) {
            lingering.add(child);
            return fact;
        }
    }
    fact.exit_status = reap(child).exit_status;  // it has ended: this does not wait
    return fact;
}

CommandFact run_line(std::string const& line, Deadline deadline) {
    auto const words = words_in(line);
    return run_command({words.begin(), words.end()}, deadline);
}

}  // namespace vfmgr::checks
