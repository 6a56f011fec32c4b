// SPDX-License-Identifier: Apache-2.0
// Carries reservations out. Only the elected replica does: what it writes and what it sends has its
// fence, and whoever was elected before it gets nothing any more, in etcd nor on a host.
//
// A reservation is one key in etcd, written before its host is asked for the VFs. So whatever
// happens then, its name belongs to one host, and what the host keeps is found there: nothing is
// concluded from an answer that is lost. It is the host that keeps the VFs, and frees them when
// their time is over; the key goes when the host has confirmed it, or expiry_margin later.
//
// Calls block, on any thread but the io threads; sweep() has a thread of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "service/fleet/etcd/timing.hpp"
#include "service/fleet/placement/holding.hpp"
#include "service/fleet/placement/host_words.hpp"
#include "service/fleet/placement/in_use.hpp"
#include "service/fleet/placement/summaries.hpp"
#include "service/fleet/writer.hpp"

namespace vfmgr::fleet {

struct SchedulerSeams {
    std::function<std::shared_ptr<State const>()> state;
    Writer const& writer;
    std::function<std::shared_ptr<InventoryView const>()> inventory;
    // The fence of this replica's election; absent: another replica schedules, or none.
    std::function<std::optional<Revision>()> fence;
    // Waits until `state` has everything up to that revision. False: it did not come in time.
    std::function<bool(Revision revision, Deadline deadline)> wait_for;
    // Sends to a host and waits for its answer. Errors are a ClientPool's.
    std::function<Result<http::Response>(HostRecord const& host, http::Request const& request,
                                         std::chrono::milliseconds timeout)>
        send;
    Timing timing;
};

// How many hosts are tried for one request, and how long one of them is asked.
inline constexpr int hosts_tried_max = 3;
inline constexpr std::chrono::seconds host_patience{30};

class Scheduler {
  public:
    explicit Scheduler(SchedulerSeams seams);
    ~Scheduler();  // stop()
    Scheduler(Scheduler const&) = delete;
    Scheduler& operator=(Scheduler const&) = delete;

    void start();
    void stop();
    [[nodiscard]] bool leads() const { return seams_.fence().has_value(); }

    // Keeps VFs of the host that suits best, or of the next ones if it refuses. Without a name it
    // gets one. One that is there with the same request is renewed. Errors: limit_exceeded or
    // conflict, with every host's reason; timed_out: the host may keep them, and the same request
    // again finds out; unavailable: nothing was done, or another replica schedules.
    [[nodiscard]] Result<FleetReservation> reserve(FleetReservationSpec spec, Principal const& who);
    // What reserve() would choose now. Nothing is written or sent.
    [[nodiscard]] Result<FleetReservation> preview(FleetReservationSpec const& spec,
                                                   Principal const& who);
    // Has the host give up what it still keeps, then erases the reservation.
    [[nodiscard]] Result<void> release(std::string const& name, Principal const& who);

    // Settles reservations whose host was not heard from since, or does not list them: those of a
    // scheduler that died, used up, released on the host or expired. Tests call it without start().
    void sweep();
    // Decisions that hosts have not reported yet.
    [[nodiscard]] std::size_t unreported() const;

  private:
    struct Attempt;
    struct Known;

    [[nodiscard]] Result<Revision> leading();
    [[nodiscard]] Result<void> follow_fence(Revision fence);
    void forget_reported(InventoryView const& view, State const& state);
    [[nodiscard]] Result<std::vector<Ranked>> decide(FleetReservationSpec const& spec,
                                                     std::vector<Ranked> const& refused,
                                                     bool takes);
    [[nodiscard]] Result<FleetReservation> place(Attempt& attempt);
    [[nodiscard]] Result<FleetReservation> renew(Attempt& attempt, ReservationRecord record);
    [[nodiscard]] Result<void> write(Attempt& attempt, ReservationRecord const& record);
    [[nodiscard]] Result<void> erase_record(Revision fence, std::string const& name,
                                            std::string const& act);
    [[nodiscard]] HostWord ask(std::string const& host, http::Request const& request);
    [[nodiscard]] HostWord keep(Attempt const& attempt, ReservationRecord const& record,
                                std::vector<VfsOfPf> const& pfs);
    [[nodiscard]] std::optional<std::variant<HostRefusal, Outdated, Unknown>> drop(
        std::string const& host, http::Request const& request);
    [[nodiscard]] bool is_due(Known const& known, std::string const& name,
                              ReservationRecord const& record);
    void settle_one(Revision fence, Known const& known, std::string const& name,
                    ReservationRecord const& record);
    void forget(std::string const& name);

    SchedulerSeams const seams_;
    NamesInUse in_use_;
    mutable std::mutex mutex_;  // guards all below
    Revision followed_fence_ = 0;
    Taken taken_;
    std::map<std::string, std::string> taken_hosts_;  // by the reservation's name
    Summaries summaries_;
    std::map<std::string, Deadline> asked_at_;  // when the sweep asked about them last
    std::unique_ptr<OwnThread> thread_;
};

}  // namespace vfmgr::fleet
