// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/scripted_guests.hpp"

#include <sys/socket.h>

#include <array>

namespace vfmgr::fakes {
namespace {

constexpr std::chrono::seconds answer_time{60};

}  // namespace

Result<FileDescriptor> ScriptedGuests::connect() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return fail(Problem::unavailable, "no socket", "see the cause");
    FileDescriptor front(ends[1]);
    auto dialogue = std::make_shared<guestd::Dialogue>(
        FileDescriptor(ends[0]),
        guestd::DialogueHooks{[](guestd::Request const&) -> Result<guestd::Answer> {
                                  return guestd::Answer{.load = guestd::Load{}};
                              },
                              [this](guestd::Message const& message) { return take(message); },
                              [] {}});
    dialogue->send(guestd::Greeting{guestd::protocol, VFMGR_VERSION, "scripted", {}});
    std::shared_ptr<guestd::Dialogue> earlier;
    std::lock_guard const lock(mutex_);
    earlier = std::exchange(dialogue_, std::move(dialogue));
    return front;
}

bool ScriptedGuests::take(guestd::Message const& message) {
    auto const* const push = std::get_if<guestd::Push>(&message);
    if (!push) return false;
    for (auto const& vm : push->vms) end_runs_of(vm);
    return true;
}

void ScriptedGuests::end_runs_of(GuestVm const& vm) {
    std::lock_guard const lock(mutex_);
    for (auto const& one : vm.access.attachments) {
        if (!one.run || !ended_.insert(*one.run).second) continue;
        auto verdict = next_();
        verdict.run = *one.run;
        verdict.attachment = one.attachment;
        verdict.vf_mac = one.mac;
        // The receiving thread must not wait for an answer. The next push tries a run again.
        if (!ending_.begin({}, [this, verdict] { tell(verdict); })) ended_.erase(*one.run);
    }
}

void ScriptedGuests::tell(Verification const& verdict) {
    auto const dialogue = [this] {
        std::lock_guard const lock(mutex_);
        return dialogue_;
    }();
    auto const deadline = std::chrono::steady_clock::now() + answer_time;
    // vfmgrd starts anew what it has got no verdict on.
    static_cast<void>(
        dialogue->ask({.call = guestd::Call::verdict, .verification = verdict}, deadline)
            .has_value());
}

}  // namespace vfmgr::fakes
