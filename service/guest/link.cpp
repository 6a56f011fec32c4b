// SPDX-License-Identifier: Apache-2.0
#include "service/guest/link.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr::guestd {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds greeting_time{20};  // for systemd to start vfmgr-guestd
constexpr seconds retry_time{1};
constexpr seconds load_time{2};
constexpr seconds interop_time{20};
// vf-guest waits for a minute at most, and asks again within this time when it has done its work.
constexpr seconds wait_time = seconds{60} + seconds{30};
constexpr std::size_t asking_max = 16;

tl::unexpected<Error> no_guestd(std::string detail) {
    return fail(Problem::unavailable, "VMs can't report: " + std::move(detail),
                "see what it reports: systemctl status vfmgr-guestd.socket vfmgr-guestd.service");
}

Push difference(std::optional<GuestVms> const& sent, GuestVms const& now) {
    Push push{.all = !sent, .current = now.current};
    for (auto const& [uuid, vm] : now.vms) {
        auto const before = sent ? sent->vms.find(uuid) : now.vms.end();
        bool const same = sent && before != sent->vms.end() && before->second == vm;
        if (!same) push.vms.push_back(vm);
    }
    if (!sent) return push;
    for (auto const& [uuid, vm] : sent->vms)
        if (!now.vms.contains(uuid)) push.gone.push_back(uuid);
    return push;
}

}  // namespace

Link::Link(Connect connect, FrontHooks hooks, Clock const& clock)
    : connect_(std::move(connect)), hooks_(std::move(hooks)), clock_(clock), asking_(asking_max) {}

Link::~Link() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Link::start() {
    thread_ = std::thread([this] { run(); });
}

void Link::changed() {
    {
        std::lock_guard const lock(mutex_);
        push_ = true;
    }
    changed_.notify_all();
}

// systemd starts a vfmgr-guestd that has ended when this connects: only one that ends at once makes
// this wait.
void Link::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        auto const again = Steady::now() + retry_time;
        lock.unlock();
        auto const served = serve_one();
        lock.lock();
        if (stopping_) return;
        lock.unlock();
        hooks_.report(served);
        lock.lock();
        changed_.wait_until(lock, again, [this] { return stopping_; });
    }
}

Result<void> Link::serve_one() {
    {
        std::lock_guard const lock(mutex_);
        greeting_.reset();
        ended_ = false;
    }
    VFMGR_TRY(auto socket, connect_());
    {
        std::unique_lock const alone(using_);
        dialogue_ = std::make_unique<Dialogue>(
            std::move(socket),
            DialogueHooks{[this](Request const& request) { return answer(request); },
                          [this](Message const& message) { return take(message); },
                          [this] {
                              std::lock_guard const lock(mutex_);
                              ended_ = true;
                              changed_.notify_all();
                          }});
    }
    auto served = await_greeting();
    if (served) {
        push();
        hooks_.report({});
        push_until_ended();
        served = no_guestd("vfmgr-guestd ended");
    }
    std::unique_ptr<Dialogue> over;
    {
        std::unique_lock const alone(using_);
        over = std::move(dialogue_);
    }
    over.reset();  // without the lock, which its answers may wait for
    std::lock_guard const lock(pushing_);
    sent_.reset();
    return served;
}

Result<void> Link::await_greeting() {
    std::optional<Greeting> greeting;
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, greeting_time, [this] { return greeting_ || ended_ || stopping_; });
        greeting = greeting_;
    }
    if (!greeting) return no_guestd("vfmgr-guestd does not answer");
    if (greeting->protocol != protocol)
        return fail(Problem::unavailable,
                    fmt::format("VMs can't report: vfmgr-guestd is of another version: {}",
                                greeting->version),
                    "restart both: systemctl restart vfmgr-guestd.service vfmgrd.service");
    std::lock_guard const lock(pushing_);
    // The sessions of one that has ended are gone.
    if (greeting->instance != instance_) {
        retries_.begin_again();
        std::lock_guard const waits(mutex_);
        waited_.clear();
    }
    instance_ = greeting->instance;
    return {};
}

void Link::push_until_ended() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return push_ || ended_ || stopping_; });
            if (ended_ || stopping_) return;
        }
        push();
    }
}

void Link::push() {
    std::lock_guard const ordered(pushing_);
    {
        std::lock_guard const lock(mutex_);
        push_ = false;
    }
    std::shared_lock const connected(using_);
    if (!dialogue_ || dialogue_->ended()) return;
    auto now = retries_.named(hooks_.vms());
    forget_stopped(now);
    if (sent_ == now) return;
    dialogue_->send(difference(sent_, now));
    sent_ = std::move(now);
}

// A VM that has started again may no longer run vf-guest.
void Link::forget_stopped(GuestVms const& now) {
    std::lock_guard const lock(mutex_);
    std::erase_if(waited_, [&](auto const& one) {
        auto const found = now.vms.find(one.first);
        return found == now.vms.end() || found->second.vm != one.second.vm;
    });
}

bool Link::take(Message const& message) {
    std::lock_guard const lock(mutex_);
    if (auto const* const greeting = std::get_if<Greeting>(&message)) {
        greeting_ = *greeting;
        changed_.notify_all();
        return true;
    }
    auto const* const waits = std::get_if<Waits>(&message);
    if (!waits) return false;
    auto const now = clock_.steady_now();
    std::erase_if(waited_, [&](auto const& one) { return one.second.at + wait_time < now; });
    waited_[waits->vm.uuid] = {waits->vm, now};
    return true;
}

Result<Answer> Link::answer(Request const& request) {
    Answer answer;
    switch (request.call) {
        case Call::identify: {
            VFMGR_TRY(answer.vm, hooks_.identify(*request.cid));
            return answer;
        }
        case Call::confirm: {
            VFMGR_CHECK(hooks_.confirm(*request.vm, *request.cid));
            push();  // what the API has answered so far counts for what the VM does next
            return answer;
        }
        case Call::topology: {
            VFMGR_TRY(answer.topology, hooks_.topology(*request.vm));
            return answer;
        }
        case Call::start_run: {
            VFMGR_CHECK(hooks_.start_run(*request.vm, *request.ticket));
            push();  // before the answer: its guest is told about the run next
            return answer;
        }
        case Call::enrol: {
            VFMGR_TRY(answer.key, hooks_.enrol(*request.vm, *request.secret));
            push();  // before the answer: its guest shows the key next
            return answer;
        }
        case Call::verdict: {
            answer.verification = request.verification;
            auto& run = answer.verification->run;
            auto const name = std::exchange(run, original_run(run));
            hooks_.verdict(*answer.verification);
            run = name;
            return answer;
        }
        case Call::load:
        case Call::open_interop:
        case Call::find_interop:
        case Call::close_interop:
            break;
    }
    return fail(Problem::forbidden, "vfmgrd alone asks for this", "no action is needed");
}

bool Link::guest_waits(std::string const& guest) const {
    std::lock_guard const lock(mutex_);
    auto const found = waited_.find(guest);
    return found != waited_.end() && clock_.steady_now() < found->second.at + wait_time;
}

Result<std::string> Link::fingerprint() const {
    std::lock_guard const lock(mutex_);
    if (!greeting_) return no_guestd("vfmgr-guestd is not connected");
    if (greeting_->fingerprint) return *greeting_->fingerprint;
    return no_guestd("vfmgr-guestd has no certificate for guests on TCP");
}

Result<Answer> Link::ask_now(Request request, seconds patience) {
    std::shared_lock const connected(using_);
    if (!dialogue_) return no_guestd("vfmgr-guestd is not connected");
    return dialogue_->ask(std::move(request), Steady::now() + patience);
}

std::optional<Load> Link::load() {
    auto answer = ask_now({.call = Call::load}, load_time);
    return answer ? answer->load : std::nullopt;
}

void Link::ask(Request request, Done done) {
    bool const begun = asking_.begin({}, [this, request = std::move(request), done] {
        push();  // so that it knows the attachment
        done(ask_now(request, interop_time));
    });
    if (!begun)
        done(fail(Problem::limit_exceeded,
                  fmt::format("{} requests about interop clients are underway", asking_max),
                  "try again when some have ended"));
}

}  // namespace vfmgr::guestd
