// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "api/types/child_process.hpp"
#include "api/types/file_descriptor.hpp"

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

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (auto& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

int start(std::vector<std::string> words, Pipe const& out, Pipe const& err, pid_t& child) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out.to.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err.to.get(), STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    auto variables = environment();
    int const error = ::posix_spawnp(&child, words.front().c_str(), &files, &attributes,
                                     pointers(words).data(), pointers(variables).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
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

int milliseconds_until(Deadline deadline) {
    using std::chrono::milliseconds;
    auto const left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::max(milliseconds::zero(), left).count());
}

// Reads both streams to their ends; returns false at the deadline.
bool listen(Pipe& out, Pipe& err, CommandFact& fact, Deadline deadline) {
    std::array<pollfd, 2> streams{{{out.from.get(), POLLIN, 0}, {err.from.get(), POLLIN, 0}}};
    std::array<std::string*, 2> const texts{&fact.out, &fact.err};
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        int const ready = ::poll(streams.data(), streams.size(), milliseconds_until(deadline));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        for (std::size_t i = 0; i < streams.size(); ++i)
            if (streams[i].revents != 0 && !take(streams[i].fd, *texts[i])) streams[i].fd = -1;
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
    pid_t child = 0;
    fact.error = out.to && err.to ? start(words, out, err, child) : errno;
    if (fact.error != 0) return fact;
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
    int status = 0;
    // The child has ended: this does not wait.
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    fact.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return fact;
}

}  // namespace vfmgr::checks
