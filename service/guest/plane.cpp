// SPDX-License-Identifier: Apache-2.0
#include "service/guest/plane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/http/places.hpp"
#include "api/types/json.hpp"
#include "api/types/problem.hpp"
#include "api/types/text.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr {
namespace {

using http::json_response;

// A verdict takes a second, and calls to other hosts (remote_calls_max at once) may hang; the other
// threads answer other requests meanwhile.
constexpr std::size_t threads = 4;

http::Response refusal(http::Request const& request, Error const& error) {
    return http::problem_response(error, request);
}

// Returns 0 if absent. Accepts only digits, within T's range.
template <class T>
Result<T> number_in_query(http::Request const& request, std::string const& name) {
    auto const found = request.query.find(name);
    if (found == request.query.end()) return T{0};
    auto const value = parse_digits(found->second, {.max = std::numeric_limits<T>::max()});
    if (value) return static_cast<T>(*value);
    return fail(Problem::invalid_request, fmt::format("{} is not a whole number", name),
                "leave it out or send digits");
}

// The revision is a hash of the configuration's content, so no counter must survive a restart. 53
// bits, so that every JSON reader preserves it. Never 0: a guest without a configuration sends 0.
std::uint64_t revision_of(GuestConfig const& config) {
    auto without = config;
    without.revision = 0;
    auto const text = nlohmann::json(without).dump();
    auto const digest = verify::digest_hex(text);
    std::uint64_t revision = 0;
    std::from_chars(digest.data(), digest.data() + 13, revision, 16);
    return revision | 1;
}

}  // namespace

GuestPlane::GuestPlane(GuestPlaneHooks hooks, verify::Responder& responder, Clock const& clock,
                       GuestPlaneLimits const& limits)
    : hooks_(std::move(hooks)),
      responders_(responder, limits.remote_calls_max),
      clock_(clock),
      limits_(limits),
      jobs_(limits.jobs),
      request_rates_(limits.requests),
      session_rates_(limits.sessions) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

GuestPlane::~GuestPlane() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
}

http::Handler GuestPlane::handler() {
    return [this](http::Request request, http::Respond respond) {
        // Vsock listeners refuse unprivileged ports at accept; this check serves other callers.
        if (auto const good = http::check_source(http::SourcePort::privileged, request.peer); !good)
            return respond(refusal(request, good.error()));
        auto const cid = std::get<http::VsockPeer>(request.peer).cid;
        take(cid, std::move(request), std::move(respond));
    };
}

void GuestPlane::changed() {
    {
        std::lock_guard const lock(mutex_);
        observe_again_ = true;
    }
    wake_.notify_one();
}

void GuestPlane::cut(GuestNumber guest) {
    std::lock_guard const lock(mutex_);
    jobs_.drop(guest);
}

// Does everything that needs no hook.
void GuestPlane::take(GuestNumber guest, http::Request request, http::Respond respond) {
    auto route = guest_route(request.method, request.path);
    if (!route) return respond(refusal(request, route.error()));
    if (auto const known = http::check_query(request, route->query); !known)
        return respond(refusal(request, known.error()));
    if (auto other = http::refuse_other_media(request)) return respond(std::move(*other));
    if (auto const queued = enqueue({request, std::move(*route), guest, respond}); !queued)
        respond(refusal(request, queued.error()));
}

Result<void> GuestPlane::enqueue(Job job) {
    auto const now = clock_.steady_now();
    std::lock_guard const lock(mutex_);
    bool const session = job.route.to == GuestRoute::To::open_session ||
                         job.route.to == GuestRoute::To::start_run ||
                         job.route.to == GuestRoute::To::enrol;
    auto const guest = job.guest;
    bool const too_many =
        !request_rates_.take(guest, now) || (session && !session_rates_.take(guest, now));
    auto queued = too_many
                      ? Result<void>(fail(Problem::unavailable, "this VM sends too many requests",
                                          "wait 10 seconds"))
                      : jobs_.push(guest, std::move(job));
    if (queued)
        wake_.notify_one();
    else
        ++refused_;
    return queued;
}

GuestPlaneLoad GuestPlane::load() const {
    std::lock_guard const lock(mutex_);
    return {jobs_.waiting(), waiters_.size(), refused_};
}

void GuestPlane::work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (observe_again_) {
            observe_again_ = false;
            lock.unlock();
            static_cast<void>(guarded([this]() -> Result<void> {
                observe_again();
                return {};
            }));
            lock.lock();
            continue;
        }
        if (auto next = jobs_.take()) {
            auto const guest = next->first;
            auto& job = next->second;
            lock.unlock();
            auto const request = job.request;
            auto const respond = job.respond;
            auto const done = guarded([&]() -> Result<void> {
                serve(std::move(job));
                return {};
            });
            if (!done) respond(refusal(request, done.error()));
            lock.lock();
            jobs_.done(guest);
            continue;
        }
        auto const first = std::ranges::min_element(waiters_, {}, &Waiter::until);
        if (first == waiters_.end()) {
            wake_.wait(lock);
            continue;
        }
        auto const until = first->until;  // the waiter may be gone after the wait
        if (wake_.wait_until(lock, until) == std::cv_status::timeout) observe_again_ = true;
    }
}

void GuestPlane::observe_again() {
    answer_waiters();
    end_forbidden_sessions();
}

// Answers reads from the published view of the VMs.
void GuestPlane::serve(Job job) {
    auto const vm = hooks_.identify(job.guest);
    if (!vm) return job.respond(refusal(job.request, vm.error()));
    if (job.route.to == GuestRoute::To::config) return serve_config(std::move(job), *vm);
    if (job.request.method != "GET")
        if (auto const still = hooks_.confirm(*vm, job.guest); !still)
            return job.respond(refusal(job.request, still.error()));
    auto response = answer(job, *vm);
    job.respond(response ? std::move(*response) : refusal(job.request, response.error()));
}

Result<http::Response> GuestPlane::answer(Job& job, VmIdentity const& vm) {
    switch (job.route.to) {
        case GuestRoute::To::topology:
            return get_topology(vm);
        case GuestRoute::To::enrol:
            return enrol(job, vm);
        case GuestRoute::To::start_run:
            return start_run(job, vm);
        case GuestRoute::To::open_session:
            return open_session(job, vm);
        case GuestRoute::To::open_stream:
            return open_stream(job, vm);
        case GuestRoute::To::close_stream:
            return close_stream(job, vm);
        case GuestRoute::To::report:
            return close_session(job, vm);
        case GuestRoute::To::run_error:
            return take_error(job, vm);
        case GuestRoute::To::config:
            break;
    }
    return fail(Problem::internal, "a configuration request has no other answer");
}

// --- configuration --------------------------------------------------------------------------

Result<GuestConfig> GuestPlane::config_of(VmIdentity const& vm) {
    VFMGR_TRY(auto access, hooks_.access(vm));
    GuestConfig config;
    config.attachments = std::move(access.attachments);
    {
        std::lock_guard const lock(mutex_);
        for (auto& attachment : config.attachments) {
            auto const manual = manual_runs_.find(attachment.attachment);
            if (manual == manual_runs_.end() || attachment.run != manual->second) continue;
            attachment.run.reset();
            attachment.nonce.clear();
        }
    }
    config.revision = revision_of(config);
    return config;
}

// Only VMs with attachments get the host's addresses.
Result<http::Response> GuestPlane::get_topology(VmIdentity const& vm) {
    VFMGR_TRY(auto const access, hooks_.access(vm));
    if (access.attachments.empty())
        return fail(Problem::not_found, fmt::format("no VF is attached to VM {}", vm.name),
                    "ask the host's admin to attach one");
    VFMGR_TRY(auto const topology, hooks_.topology(vm));
    return json_response(200, topology);
}

Result<http::Response> GuestPlane::enrol(Job const& job, VmIdentity const& vm) {
    VFMGR_TRY(auto const request, from_json_text<KeyRequest>(job.request.body));
    if (job.guest <= cid_max)
        return fail(Problem::conflict, "a guest on vsock is known by its VM and needs no key",
                    "no action is needed");
    VFMGR_TRY(auto const key, hooks_.enrol(vm, request.secret));
    return json_response(201, key);
}

void GuestPlane::serve_config(Job job, VmIdentity const& vm) {
    auto const wait = number_in_query<std::uint32_t>(job.request, "wait");
    auto const revision = number_in_query<std::uint64_t>(job.request, "revision");
    if (!wait || !revision)
        return job.respond(refusal(job.request, wait ? revision.error() : wait.error()));
    auto const config = config_of(vm);
    if (!config) return job.respond(refusal(job.request, config.error()));
    if (*wait > 0) hooks_.waits(vm);
    if (*wait == 0 || config->revision != *revision)
        return job.respond(json_response(200, *config));
    wait_for_change(std::move(job), vm, *revision);
}

void GuestPlane::wait_for_change(Job job, VmIdentity const& vm, std::uint64_t revision) {
    auto const asked = number_in_query<std::uint32_t>(job.request, "wait").value_or(0);
    auto const seconds = std::min(asked, limits_.wait_seconds_max);
    std::lock_guard const lock(mutex_);
    auto const waits = [&](Waiter const& waiter) {
        return waiter.vm == vm && waiter.until != Deadline{};  // not pushed out yet
    };
    if (std::cmp_greater_equal(std::ranges::count_if(waiters_, waits), limits_.waiting_per_vm_max))
        std::ranges::find_if(waiters_, waits)->until = Deadline{};
    waiters_.push_back({vm, revision, waiters_so_far_++,
                        clock_.steady_now() + std::chrono::seconds(seconds), std::move(job)});
    // Otherwise a change between reading the configuration and waiting here would be missed.
    observe_again_ = true;
    wake_.notify_one();
}

std::vector<VmIdentity> GuestPlane::waiting_vms() const {
    std::vector<VmIdentity> vms;
    std::lock_guard const lock(mutex_);
    for (auto const& waiter : waiters_)
        if (std::ranges::find(vms, waiter.vm) == vms.end()) vms.push_back(waiter.vm);
    return vms;
}

void GuestPlane::repeat_waits() const {
    for (auto const& vm : waiting_vms()) hooks_.waits(vm);
}

// A waiter stays in the list until it is answered. The limit thus counts all waiters, whatever the
// other thread does meanwhile.
void GuestPlane::answer_waiters() {
    std::uint64_t before = 0;
    {
        std::lock_guard const lock(mutex_);
        before = waiters_so_far_;
    }
    for (auto const& vm : waiting_vms()) {
        auto const config = config_of(vm);
        for (auto& waiter : take_due(vm, config, before))
            waiter.job.respond(config ? json_response(200, *config)
                                      : refusal(waiter.job.request, config.error()));
    }
}

// Takes the waiters that came before `config` was read: later ones may know a newer one.
std::list<GuestPlane::Waiter> GuestPlane::take_due(VmIdentity const& vm,
                                                   Result<GuestConfig> const& config,
                                                   std::uint64_t before) {
    std::list<Waiter> due;
    std::lock_guard const lock(mutex_);
    auto const now = clock_.steady_now();
    for (auto at = waiters_.begin(); at != waiters_.end();) {
        auto const waiter = at++;
        if (waiter->vm != vm || waiter->number >= before) continue;
        if (config && config->revision == waiter->revision && waiter->until > now) continue;
        due.splice(due.end(), waiters_, waiter);
    }
    return due;
}

}  // namespace vfmgr
