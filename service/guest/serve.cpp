// SPDX-License-Identifier: Apache-2.0
#include "service/guest/serve.hpp"

#include <algorithm>
#include <future>
#include <set>
#include <tuple>

#include "api/os/random.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"

namespace vfmgr::guestd {
namespace {

using std::chrono::seconds;

constexpr seconds answer_time{20};  // vfmgrd may have to ask libvirt
constexpr std::size_t kept_max = 256;

Error no_front() {
    return {Problem::unavailable, "vfmgrd is restarting", "try again in a few seconds"};
}

Error stopped(VmIdentity const& vm) {
    return {Problem::not_found, "VM " + vm.name + " has stopped", "try again when it runs"};
}

GuestVm const* find(GuestVms const& pushed, VmIdentity const& vm) {
    auto const found = pushed.vms.find(vm.uuid);
    return found != pushed.vms.end() && found->second.vm == vm ? &found->second : nullptr;
}

interop::InteropLimits interop_limits(std::vector<std::string> rping_program) {
    interop::InteropLimits limits;
    limits.rping_program = std::move(rping_program);
    return limits;
}

// The lives of `before` that have ended, or that connect from elsewhere now.
std::vector<GuestVm> ended_lives(GuestVms const& before, GuestVms const& now) {
    auto const place = [](GuestVm const& vm) {
        auto const tcp = vm.tcp.value_or(TcpGuest{});
        return std::tuple(vm.cid, tcp.interface, tcp.host, tcp.address);
    };
    std::vector<GuestVm> ended;
    for (auto const& [uuid, vm] : before.vms) {
        auto const* const still = find(now, vm.vm);
        if (!still || place(*still) != place(vm)) ended.push_back(vm);
    }
    return ended;
}

}  // namespace

Result<std::unique_ptr<Service>> Service::start(Seams seams) {
    VFMGR_TRY(auto responder, verify::Responder::start(verify::ResponderLimits{}, seams.check_peer,
                                                       interop::cm_streams(seams.rping_program)));
    return std::unique_ptr<Service>(new Service(seams, std::move(responder)));
}

Service::Service(Seams const& seams, std::unique_ptr<verify::Responder> responder)
    : seams_(seams),
      clock_(seams.clock),
      instance_(random_hex(8)),
      responder_(std::move(responder)),
      plane_(hooks(), *responder_, clock_, GuestPlaneLimits{}),
      interop_(interop_limits(seams.rping_program), clock_,
               interop::InteropHooks{seams.check_peer,
                                     [this](verify::SessionPermit const& permit) {
                                         return permits_interop(permit);
                                     }}),
      server_(seams.limits, seams.on_bug) {
    make_certificate();
    server_.start();
}

Service::~Service() {
    server_.stop();
    std::unique_ptr<Dialogue> over;
    {
        std::unique_lock const alone(using_);
        over = std::move(dialogue_);
    }
}

Result<void> Service::listen(http::Listen const& where, Wrap const& wrap) {
    return server_.listen(where, wrap ? wrap(plane_.handler()) : plane_.handler());
}

void Service::serve(FileDescriptor socket) {
    std::unique_ptr<Dialogue> earlier;
    {
        std::unique_lock const alone(using_);
        earlier = std::move(dialogue_);
    }
    earlier.reset();  // without the lock, which its answers may wait for
    {
        std::unique_lock const alone(using_);
        dialogue_ = std::make_unique<Dialogue>(
            std::move(socket),
            DialogueHooks{[this](Request const& request) { return answer(request); },
                          [this](Message const& message) { return take(message); },
                          [this] { lost_front(); }});
    }
    send(Greeting{protocol, VFMGR_VERSION, instance_, fingerprint_});
}

void Service::lost_front() {
    std::lock_guard const lock(mutex_);
    connected_ = false;
}

// --- what the guest plane asks ---------------------------------------------------------------

GuestPlaneHooks Service::hooks() {
    GuestPlaneHooks hooks;
    hooks.identify = [this](GuestNumber guest) { return identify(guest); };
    hooks.confirm = [this](VmIdentity const& vm, GuestNumber guest) -> Result<void> {
        auto const cid = guest > cid_max ? 0U : static_cast<std::uint32_t>(guest);
        VFMGR_CHECK(ask({.call = Call::confirm, .cid = cid, .vm = vm}));
        return {};
    };
    hooks.enrol = [this](VmIdentity const& vm, std::string const& secret) -> Result<GuestKey> {
        VFMGR_TRY(auto answer, ask({.call = Call::enrol, .vm = vm, .secret = secret}));
        if (answer.key) return std::move(*answer.key);
        return fail(no_front());
    };
    hooks.access = [this](VmIdentity const& vm) { return access(vm); };
    hooks.topology = [this](VmIdentity const& vm) -> Result<HostTopology> {
        VFMGR_TRY(auto answer, ask({.call = Call::topology, .vm = vm}));
        return answer.topology.value_or(HostTopology{});
    };
    hooks.start_run = [this](VmIdentity const& vm, RunTicket const& ticket) -> Result<void> {
        VFMGR_CHECK(ask({.call = Call::start_run, .vm = vm, .ticket = ticket}));
        return {};
    };
    hooks.on_verification = [this](Verification& verification) { deliver(verification); };
    hooks.waits = [this](VmIdentity const& vm) { send(Waits{vm}); };
    return hooks;
}

// Without vfmgrd nobody knows whether a CID is another VM's by now.
Result<VmIdentity> Service::identify(GuestNumber guest) {
    if (guest > cid_max) return guest_with(guest);
    auto const cid = static_cast<std::uint32_t>(guest);
    {
        std::lock_guard const lock(mutex_);
        if (!connected_) return fail(no_front());
        auto const has = [cid](auto const& one) {
            return !one.second.tcp && one.second.cid == cid;
        };
        auto const found = std::ranges::find_if(pushed_.vms, has);
        bool const unique = std::ranges::count_if(pushed_.vms, has) == 1;
        if (pushed_.current && unique) return found->second.vm;
    }
    VFMGR_TRY(auto answer, ask({.call = Call::identify, .cid = cid}));
    if (answer.vm) return std::move(*answer.vm);
    return fail(no_front());
}

Result<GuestAccess> Service::access(VmIdentity const& vm) const {
    std::lock_guard const lock(mutex_);
    if (auto const* const found = find(pushed_, vm)) return found->access;
    return fail(stopped(vm));
}

bool Service::permits_interop(verify::SessionPermit const& permit) const {
    std::lock_guard const lock(mutex_);
    auto const vm = pushed_.vms.find(permit.vm);
    if (vm == pushed_.vms.end()) return false;
    return std::ranges::find(vm->second.access.interop, permit) != vm->second.access.interop.end();
}

Result<Answer> Service::ask(Request request) {
    std::shared_lock const used(using_);
    if (!dialogue_ || dialogue_->ended()) return fail(no_front());
    return dialogue_->ask(std::move(request), std::chrono::steady_clock::now() + answer_time);
}

void Service::send(Message const& message) {
    std::shared_lock const used(using_);
    if (dialogue_) dialogue_->send(message);
}

// One that vfmgrd does not take now waits for the next vfmgrd.
void Service::deliver(Verification& verification) {
    auto answer = ask({.call = Call::verdict, .verification = verification});
    if (answer && answer->verification) {
        verification = std::move(*answer->verification);
        return;
    }
    std::lock_guard const lock(mutex_);
    if (kept_.size() < kept_max) kept_.push_back(verification);
}

void Service::deliver_kept() {
    std::deque<Verification> kept;
    {
        std::lock_guard const lock(mutex_);
        kept.swap(kept_);
    }
    for (auto& verification : kept) deliver(verification);
}

// --- what vfmgrd sends -----------------------------------------------------------------------

bool Service::take(Message const& message) {
    auto const* const push = std::get_if<Push>(&message);
    if (push) apply(*push);
    return push != nullptr;
}

void Service::apply(Push const& push) {
    std::vector<GuestVm> ended;
    bool verdicts_wait = false;
    {
        std::lock_guard const lock(mutex_);
        auto now = push.all ? GuestVms{} : pushed_;
        now.current = push.current;
        for (auto const& vm : push.vms) now.vms.insert_or_assign(vm.vm.uuid, vm);
        for (auto const& uuid : push.gone) now.vms.erase(uuid);
        ended = ended_lives(pushed_, now);
        pushed_ = std::move(now);
        connected_ = true;
        verdicts_wait = push.all && !kept_.empty();
    }
    end_lives(ended);
    listen_for_guests();
    plane_.changed();
    interop_.observe_again();
    if (push.all) plane_.repeat_waits();
    if (verdicts_wait) static_cast<void>(delivering_.begin({}, [this] { deliver_kept(); }));
}

// Their connections end, even if another VM gets the CID at once.
void Service::end_lives(std::vector<GuestVm> const& ended) {
    if (ended.empty()) return;
    for (auto const& guest : ended) plane_.cut(number_of(guest));
    server_.cut([ended](http::Peer const& peer, http::Presence const& presence) {
        auto const* const vsock = std::get_if<http::VsockPeer>(&peer);
        return std::ranges::any_of(ended, [&](GuestVm const& one) {
            return vsock ? !one.tcp && one.cid == vsock->cid
                         : presence.known && presence.known->name == one.vm.uuid;
        });
    });
}

Result<Answer> Service::answer(Request const& request) {
    Answer answer;
    switch (request.call) {
        case Call::load:
            answer.load = Load{plane_.load(), responder_->load()};
            return answer;
        case Call::open_interop: {
            std::promise<Result<InteropWindow>> opened;
            interop_.open(
                *request.permit, *request.interop,
                [&opened](Result<InteropWindow> const& window) { opened.set_value(window); });
            VFMGR_TRY(answer.window, opened.get_future().get());
            return answer;
        }
        case Call::find_interop:
            answer.window = interop_.find(*request.attachment);
            return answer;
        case Call::close_interop: {
            answer.window = interop_.find(*request.attachment);
            std::promise<bool> closed;
            interop_.close(*request.attachment, [&closed](bool was) { closed.set_value(was); });
            if (!closed.get_future().get()) answer.window.reset();
            return answer;
        }
        case Call::identify:
        case Call::confirm:
        case Call::topology:
        case Call::start_run:
        case Call::enrol:
        case Call::verdict:
            break;
    }
    return fail(Problem::forbidden, "vfmgr-guestd alone asks for this", "no action is needed");
}

}  // namespace vfmgr::guestd
