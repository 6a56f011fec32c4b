// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/verify_all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

namespace vfmgr::guest {
namespace {

// Where verifications that are ready wait for the others.
class StartLine {
  public:
    explicit StartLine(std::size_t expected) : missing_(expected) {}

    void await(std::string const& attachment) {
        std::unique_lock lock(mutex_);
        there_.insert(attachment);
        one_less();
        wake_.wait(lock, [this] { return missing_ == 0; });
    }
    void give_up() {
        std::lock_guard const lock(mutex_);
        one_less();
    }
    // The attachments that began with this one; none when it did not. After its end, all are known.
    [[nodiscard]] std::vector<std::string> others(std::string const& attachment) {
        std::lock_guard const lock(mutex_);
        if (!there_.contains(attachment)) return {};
        std::vector<std::string> others(there_.begin(), there_.end());
        std::erase(others, attachment);
        return others;
    }

  private:
    void one_less() {
        --missing_;
        wake_.notify_all();
    }
    std::mutex mutex_;
    std::condition_variable wake_;
    std::size_t missing_;
    std::set<std::string> there_;
};

// An uncaught exception in a thread ends the whole program, and loses the others' verdicts.
Result<VfReport> run_guarded(OneVerification const& one, std::function<void()> const& ready) {
    try {
        return one.run(ready);
    } catch (std::exception const& error) {
        return fail(Problem::internal, error.what());
    }
}

Error no_thread(std::system_error const& error) {
    return {Problem::limit_exceeded,
            fmt::format("no thread can be started to verify it: {}", error.what()),
            "raise the limit of tasks, or verify one after the other"};
}

void verify_at_once(std::vector<OneVerification> const& all, OnEnd const& on_end) {
    StartLine line(all.size());
    std::mutex one_at_a_time;
    auto const end = [&](OneVerification const& one, Result<VfReport> report) {
        std::lock_guard const lock(one_at_a_time);
        on_end(one.attachment, std::move(report));
    };
    std::vector<std::jthread> threads;
    threads.reserve(all.size());
    for (auto const& one : all) {
        try {
            threads.emplace_back([&] {
                bool ready = false;
                auto report = run_guarded(one, [&] {
                    ready = true;
                    line.await(one.attachment);
                });
                if (!ready) line.give_up();
                if (report) report->at_once_with = line.others(one.attachment);
                end(one, std::move(report));
            });
        } catch (std::system_error const& error) {
            line.give_up();  // otherwise the others wait for it
            end(one, fail(no_thread(error)));
        }
    }
}

}  // namespace

void verify_all(std::vector<OneVerification> const& all, Order order, OnEnd const& on_end) {
    if (order == Order::at_once) return verify_at_once(all, on_end);
    for (auto const& one : all) on_end(one.attachment, one.run([] {}));
}

}  // namespace vfmgr::guest
