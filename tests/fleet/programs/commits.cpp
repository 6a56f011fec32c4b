// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/programs/commits.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace vfmgr::simulation {

Result<void> Commits::open(std::filesystem::path const& file) {
    file_ = FileDescriptor(
        ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file_) {
        Error error{Problem::kernel_refused, "no " + file.string(), "see the cause"};
        error.causes.push_back(errno_cause("open", errno));
        return fail(std::move(error));
    }
    thread_ = std::thread([this] { work(); });
    return {};
}

Commits::~Commits() {
    {
        std::lock_guard const lock(mutex_);
        ends_ = true;
    }
    more_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void Commits::commit(std::string line, std::function<void()> done) {
    {
        std::lock_guard const lock(mutex_);
        waiting_.emplace_back(std::move(line), std::move(done));
    }
    more_.notify_one();
}

void Commits::work() {
    while (true) {
        Waiting now;
        {
            std::unique_lock lock(mutex_);
            more_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            now.swap(waiting_);
        }
        std::string text;
        for (auto const& [line, done] : now) text += line + "\n";
        if (::write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
            ::fdatasync(file_.get()) != 0)
            std::abort();
        lines_ += now.size();
        ++syncs_;
        for (auto const& [line, done] : now) done();
    }
}

}  // namespace vfmgr::simulation
