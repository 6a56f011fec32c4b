// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/udev.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>

#include "api/os/descriptor.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr::guest {
namespace {

// udev writes it when its rules are done, and again after a rename; until then ID_RENAMING is 1.
bool is_done(std::filesystem::path const& record) {
    std::ifstream in(record);
    if (!in) return false;
    for (std::string line; std::getline(in, line);)
        if (line == "E:ID_RENAMING=1") return false;
    return true;
}

}  // namespace

Result<void> await_udev(std::filesystem::path const& run, int ifindex, Deadline deadline) {
    auto const folder = run / "udev/data";
    std::error_code ignored;
    if (!std::filesystem::exists(run / "udev/control", ignored)) return {};
    FileDescriptor const changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    // Precedes the first check. udev replaces a record by renaming a new one over it.
    if (!changes || ::inotify_add_watch(changes.get(), folder.c_str(), IN_MOVED_TO) < 0)
        return fail({Problem::unavailable,
                     fmt::format("{} can't be watched", folder.string()),
                     "raise fs.inotify.max_user_instances",
                     {errno_cause("inotify_add_watch", errno)}});
    while (!is_done(folder / fmt::format("n{}", ifindex))) {
        VFMGR_TRY(auto const ready, await_readable(std::array{changes.get()}, deadline));
        if (ready == Readiness::deadline_passed)
            return fail(Problem::timed_out,
                        fmt::format("udev has not finished with the netdev of ifindex {}", ifindex),
                        "check what udev does: journalctl -u systemd-udevd");
        std::array<std::byte, 4096> events{};
        while (::read(changes.get(), events.data(), events.size()) > 0) {
        }
    }
    return {};
}

}  // namespace vfmgr::guest
