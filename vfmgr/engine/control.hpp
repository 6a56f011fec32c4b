// SPDX-License-Identifier: Apache-2.0
// The control thread: the only writer of the store and of what is published. It never calls kernel
// or libvirt, so it always answers. Owned by the engine; every method may be called from any
// thread, wait() from any but the control thread itself.
//
// What tasks read and change is Control::State, and only vfmgr/engine includes its header. Others
// read a Snapshot, submit a Command, or ask one of the engine's queries (Query<T>), each in the
// turn of its client.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/types/guest.hpp"
#include "vfmgr/engine/claims.hpp"
#include "vfmgr/engine/query.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/store/store.hpp"

namespace vfmgr {

// Another host's responder, as it was when the run began.
struct RemoteEnd {
    ResponderTarget target;  // with its token, which is stored nowhere else
    ResponderInfo info;
    std::optional<TestPath> path;  // to the responder
};

// A verification that was requested of the guest and has no report yet.
struct PendingRun {
    std::string run;
    std::string nonce;  // ties session and report to this run
    Time started_at{};
    Time until{};  // the wait for a report ends here
    Profile profile = Profile::default_;
    std::optional<RemoteEnd> remote{};  // absent: this host answers
    std::string vm_uuid{};              // of the attachment's VM
    VfSpec settings{};                  // the attachment's, when the run began
};

// What readers get. Each part is immutable; a reader keeps what it took.
struct Snapshot {
    std::shared_ptr<HostView const> host;
    std::shared_ptr<DesiredState const> desired;
    std::shared_ptr<std::map<std::string, PendingRun> const> runs;  // by attachment
    std::shared_ptr<std::map<std::string, Token> const> tokens;     // by each secret's SHA-256
    bool store_refuses = false;                                     // changes: Store::refusal()
};

// crowded: this watch exceeds its client's limit, and is not called again.
enum class Watch { again, expired, crowded };

inline constexpr std::size_t watchers_each_max = 32;  // of one client

struct ObservationTime {
    Time began;
    Time ended;
};

class Control {
  public:
    // What a task reads and changes: vfmgr/engine/state.hpp, for vfmgr/engine only.
    class State;

    // Deadlines are times of `clock`, which outlives the returned object.
    [[nodiscard]] static Result<std::unique_ptr<Control>> start(Store store, Clock const& clock);
    ~Control();
    Control(Control const&) = delete;
    Control& operator=(Control const&) = delete;

    // Queues the daemon's own work. `published` is called on the control thread once readers can
    // read what the task did.
    void post(std::function<void(State&)> task, std::function<void()> published = [] {});
    // Queues a client's task: after all own work, in turn with other clients'. Refused when too
    // many of this client's tasks are waiting already.
    [[nodiscard]] Result<void> offer(
        std::string const& client, std::function<void(State&)> task,
        std::function<void()> published = [] {});
    // Returns when every task that was offered before is done.
    void finish_offers();

    // Returns when the result of the task is published; rethrows what the task throws.
    template <class F>
    auto wait(F task) -> std::invoke_result_t<F, State&> {
        std::optional<std::invoke_result_t<F, State&>> result;
        std::exception_ptr bug;
        std::promise<void> done;
        auto published = done.get_future();
        post(
            [&](State& state) {
                try {
                    result.emplace(task(state));
                } catch (...) {
                    bug = std::current_exception();
                }
            },
            [&] { done.set_value(); });
        published.get();
        if (bug) std::rethrow_exception(bug);
        return std::move(*result);
    }

    // Calls `ready` at the end of this turn, after every change, and once more as expired at the
    // deadline, until it returns true. What it finds is published already, what it changes then.
    void watch(Deadline deadline, std::function<bool(State&, Watch)> ready);
    // The same for a client, in its turn; stops when the client has gone.
    [[nodiscard]] Result<void> watch(Client client, Deadline deadline,
                                     std::function<bool(State&, Watch)> ready);

    // Calls present and future watches as if their deadline had come.
    void expire_watches();

    // Merges observations into what is published. Observations overlap, and a slow one arrives
    // late: for each PF, the network, libvirt and each VM the later read is kept.
    void publish(KernelView const& observed, KernelScope const& scope, ObservationTime const& when);
    void publish(HypervisorView const& observed, HypervisorScope const& scope, Time now);

    // From now on, what observations find changed on the host becomes events.
    void record_host();

    [[nodiscard]] Snapshot snapshot() const;
    [[nodiscard]] Clock const& clock() const { return clock_; }
    // `changed` is called on the control thread after each change. Don't call this on the control
    // thread.
    void on_change(std::function<void()> changed);
    // `report` is called on the control thread when an exception ended a task, a request, an
    // operation or an observation.
    void on_bug(std::function<void(std::string const& what)> report);
    void report_bug(std::string what);

  private:
    Control(std::unique_ptr<State> state, Clock const& clock);
    void run();
    void record_changes();
    // Returns whether anything changed since the last time: the state, or what is published of the
    // host.
    [[nodiscard]] bool publish_changes();
    void ask_watchers(Deadline now, bool changed);
    // Returns false when the work threw. A failure for one client must not keep the others from
    // being served.
    bool guarded(std::function<void()> const& work) const;
    [[nodiscard]] Deadline next_deadline() const;

    struct Task {
        std::function<void(State&)> run;
        std::function<void()> published;
    };

    struct Watcher {
        Deadline deadline;
        std::function<bool(State&, Watch)> ready;
        Client client{};  // without a name: the daemon itself
    };
    static bool has_gone(Watcher const& watcher);
    void add_watcher(Watcher watcher);

    Clock const& clock_;
    std::unique_ptr<State> state_;              // control thread only
    std::vector<Watcher> watchers_;             // control thread only
    bool expiring_ = false;                     // control thread only
    std::function<void()> changed_;             // control thread only
    bool records_host_ = false;                 // control thread only
    std::shared_ptr<HostView const> recorded_;  // control thread only
    // Control thread only.
    std::function<void(std::string const&)> bug_ = [](std::string const&) {};
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Task> tasks_;     // mutex_
    FairQueue<Task> offered_;    // mutex_
    bool stopping_ = false;      // mutex_
    Snapshot published_;         // mutex_
    bool host_changed_ = false;  // mutex_
    // When what is published was read, where the view itself does not record it. mutex_
    Time all_pfs_at_{};
    Time routes_at_{};
    std::map<std::string, Time> vms_at_;  // VMs that were observed since all were
    std::thread thread_;
};

// Applies the batch's changes in memory. Pure.
void apply(Batch const& batch, DesiredState& desired);

}  // namespace vfmgr
