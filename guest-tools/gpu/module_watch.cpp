// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/module_watch.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace vfmgr::guest::gpu {

Result<ModuleWatch> ModuleWatch::open(std::string root, std::string const& release) {
    auto const folder = root + "/lib/modules/" + release;
    VFMGR_TRY(auto monitor, EventMonitor::open(EventMonitor::Scope::links));
    FileDescriptor lists(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    // depmod writes a new file and renames it. Without the folder, nothing can be built for this
    // kernel.
    if (lists && ::inotify_add_watch(lists.get(), folder.c_str(), IN_MOVED_TO) < 0) lists.reset();
    ModuleWatch watch(std::move(monitor), std::move(lists), root + "/proc/modules",
                      folder + "/modules.dep", root + "/sys/bus/pci/drivers/nvidia");
    watch.observed_ = watch.now();
    return watch;
}

// Returns names and states of modules, but not their users, which come and go; the identity of the
// list; and the GPUs of the driver.
std::string ModuleWatch::now() const {
    std::string all;
    std::ifstream in(modules_);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name, bytes, uses, users, state;
        words >> name >> bytes >> uses >> users >> state;
        all += fmt::format("{} {}\n", name, state);
    }
    struct stat status{};
    if (::stat(list_.c_str(), &status) == 0)
        all +=
            fmt::format("{} {}.{}", status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    std::error_code ignored;
    for (auto const& entry : std::filesystem::directory_iterator(driver_, ignored))
        all += '\n' + entry.path().filename().string();
    return all;
}

Result<Readiness> ModuleWatch::wait(Deadline deadline) {
    std::vector<int> fds;
    for (auto const fd : monitor_.fds()) fds.push_back(fd);
    if (lists_) fds.push_back(lists_.get());
    while (true) {
        auto const is = now();
        if (is != observed_) {
            observed_ = is;
            return Readiness::readable;
        }
        VFMGR_TRY(auto const ready, await_readable(fds, deadline));
        if (ready == Readiness::deadline_passed) return ready;
        VFMGR_CHECK(monitor_.wait(std::chrono::steady_clock::now()));
        std::array<std::byte, 4096> events{};
        while (lists_ && ::read(lists_.get(), events.data(), events.size()) > 0) {
        }
    }
}

}  // namespace vfmgr::guest::gpu
