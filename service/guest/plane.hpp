// SPDX-License-Identifier: Apache-2.0
// The guest plane on vsock and TCP (api/openapi-guest.yaml): identity -> attachment -> permitted
// session, nothing else. Guests are hostile: a VM reaches only its own attachments, and everything
// it sends is data with limits. Owned by run(). The handler is called on the io thread and never
// blocks; the plane's own threads do the work and call the hooks.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/time.hpp"
#include "api/types/topology.hpp"
#include "service/guest/guest_vm.hpp"
#include "service/guest/responders.hpp"
#include "service/guest/route.hpp"
#include "service/guest/vm_queue.hpp"
#include "service/rate_limit.hpp"
#include "vfmgr/proof/host/responder.hpp"

namespace vfmgr {

// The plane's calls to vfmgrd. All run on the plane's threads and may block for a while.
struct GuestPlaneHooks {
    // Fails with not_found if no running VM is known to have this CID, or no such guest is on TCP.
    std::function<Result<VmIdentity>(GuestNumber guest)> identify;
    // Called before a change. Fails with not_found if this life of the VM is over by now.
    std::function<Result<void>(VmIdentity const&, GuestNumber guest)> confirm;
    // Fails with not_found if this life of the VM is over.
    std::function<Result<GuestAccess>(VmIdentity const&)> access;
    // Returns where the PCI functions attached to this VM are on this host.
    std::function<Result<HostTopology>(VmIdentity const&)> topology;
    // Afterwards access() returns the ticket's run and a permit for it.
    std::function<Result<void>(VmIdentity const&, RunTicket const&)> start_run;
    // Returns a key for the guest on TCP that shows this secret.
    std::function<Result<GuestKey>(VmIdentity const&, std::string const& secret)> enrol;
    // Takes the verdict on a run; the daemon adds what it knows. The plane does not report that no
    // verdict came by the run's deadline: the daemon must notice.
    std::function<void(Verification&)> on_verification;
    // This VM's vf-guest begins to wait for work.
    std::function<void(VmIdentity const&)> waits;
};

struct GuestPlaneLimits {
    VmQueueLimits jobs{};
    std::size_t waiting_per_vm_max = 4;  // long polls; the oldest is answered if there are more
    std::uint32_t wait_seconds_max = 60;
    RateLimit requests{.burst = 30, .per_second = 5};
    RateLimit sessions{.burst = 12, .per_second = 0.5};
    std::size_t remote_calls_max = 2;  // concurrent calls to responders of other hosts
};

class GuestPlane {
  public:
    GuestPlane(GuestPlaneHooks hooks, verify::Responder& responder, Clock const& clock,
               GuestPlaneLimits const& limits);
    ~GuestPlane();
    GuestPlane(GuestPlane const&) = delete;
    GuestPlane& operator=(GuestPlane const&) = delete;

    // For Server::listen(VsockListen{…, privileged}). Valid as long as the plane is; stop the
    // server first.
    [[nodiscard]] http::Handler handler();
    // A request of a guest on TCP. On the io thread.
    void take(GuestNumber guest, http::Request request, http::Respond respond);
    // Attachments, runs or VMs changed: answers the affected long polls, and ends the sessions that
    // are no longer permitted. Any thread; returns at once.
    void changed();
    // This guest has gone, or the VM with this CID has stopped: its pending requests are dropped.
    // Any thread.
    void cut(GuestNumber guest);
    // Calls the hook waits() for each VM that waits now: vfmgrd has started anew. Any thread.
    void repeat_waits() const;
    [[nodiscard]] GuestPlaneLoad load() const;  // any thread

  private:
    struct Job {
        http::Request request;
        GuestRoute route;
        GuestNumber guest = 0;
        http::Respond respond;
    };
    struct Waiter {
        VmIdentity vm;
        std::uint64_t revision = 0;
        std::uint64_t number = 0;  // in order of arrival
        Deadline until;            // Deadline{}: pushed out by a later one
        Job job;
    };
    struct Session {
        VmIdentity vm;
        Permitted run;
        Time started_at{};
    };
    using Sessions = std::map<std::string, Session>;  // by id
    struct Kept {
        bool is_new = false;
        Sessions replaced{};  // sessions of the same attachment, to be dropped
    };

    [[nodiscard]] Result<void> enqueue(Job job);
    void work();
    void observe_again();
    void serve(Job job);
    [[nodiscard]] Result<http::Response> answer(Job& job, VmIdentity const& vm);
    void serve_config(Job job, VmIdentity const& vm);
    void wait_for_change(Job job, VmIdentity const& vm, std::uint64_t revision);
    [[nodiscard]] Result<GuestConfig> config_of(VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> enrol(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> get_topology(VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> start_run(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> open_session(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<Sessions::iterator> find_session(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<Permitted> require_session(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> open_stream(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> close_stream(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> close_session(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<http::Response> take_error(Job const& job, VmIdentity const& vm);
    [[nodiscard]] Result<Permitted> permit_of(VmIdentity const& vm, std::string const& run);
    void free_session(GuestNumber guest);
    [[nodiscard]] Result<void> keep(SessionOffer const& offer, Session session);
    [[nodiscard]] Kept remember(SessionOffer const& offer, Session session);
    bool end_unless_permitted(std::string const& id, VmIdentity const& vm, Permitted const& run);
    void end_session_of(std::string const& run);
    void deliver(Verification& verification, Permitted const& run, Time started_at);
    [[nodiscard]] std::vector<VmIdentity> waiting_vms() const;
    void answer_waiters();
    [[nodiscard]] std::list<Waiter> take_due(VmIdentity const& vm,
                                             Result<GuestConfig> const& config,
                                             std::uint64_t before);
    void end_forbidden_sessions();

    GuestPlaneHooks const hooks_;
    Responders responders_;
    Clock const& clock_;
    GuestPlaneLimits const limits_;

    mutable std::mutex
        mutex_;  // guards the members below; never held while a hook or the responder works
    std::condition_variable wake_;
    VmQueue<Job> jobs_;
    std::list<Waiter> waiters_;  // the oldest first
    std::uint64_t waiters_so_far_ = 0;
    Sessions sessions_;
    // The last manual run per attachment. `vf-guest verify` does it, so the configuration omits it.
    std::map<std::string, std::string> manual_runs_;
    RateLimiter<GuestNumber> request_rates_;
    RateLimiter<GuestNumber> session_rates_;
    std::uint64_t refused_ = 0;
    bool observe_again_ = false;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace vfmgr
