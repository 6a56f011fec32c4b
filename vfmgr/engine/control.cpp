// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/control.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/execute.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {

void apply(Batch const& batch, DesiredState& desired) {
    for (auto const& [address, pf] : batch.save_pfs) desired.pfs[address] = pf;
    for (auto const& address : batch.erase_pfs) desired.pfs.erase(address);
    for (auto const& network : batch.save_networks)
        desired.networks[network.network.name] = network;
    for (auto const& name : batch.erase_networks) desired.networks.erase(name);
    for (auto const& pool : batch.save_pools) desired.pools[pool.pool.name] = pool;
    for (auto const& name : batch.erase_pools) desired.pools.erase(name);
    for (auto const& tenant : batch.save_tenants) desired.tenants[tenant.tenant.name] = tenant;
    for (auto const& name : batch.erase_tenants) desired.tenants.erase(name);
    for (auto const& reservation : batch.save_reservations)
        desired.reservations[reservation.name] = reservation;
    for (auto const& name : batch.erase_reservations) desired.reservations.erase(name);
    if (batch.save_handed_out) desired.handed_out = *batch.save_handed_out;
    for (auto const& attachment : batch.save_attachments)
        desired.attachments[attachment.id] = attachment;
    for (auto const& keys : batch.save_guest_keys) desired.guest_keys[keys.attachment] = keys;
    for (auto const& id : batch.erase_attachments) {
        desired.attachments.erase(id);
        desired.guest_keys.erase(id);
    }
    for (auto const& quarantine : batch.save_quarantines)
        desired.quarantine[quarantine.vf] = quarantine;
    for (auto const& vf : batch.erase_quarantines) desired.quarantine.erase(vf);
    for (auto const& [card, tries] : batch.save_firmware_tries)
        desired.firmware_tries[card] = tries;
    for (auto const& card : batch.erase_firmware_tries) desired.firmware_tries.erase(card);
    for (auto const& link : batch.save_rdma_links) desired.rdma_links[link.link.name] = link;
    for (auto const& name : batch.erase_rdma_links) desired.rdma_links.erase(name);
    if (batch.save_fleet) desired.fleet = batch.save_fleet;
    if (batch.erase_fleet) desired.fleet.reset();
    if (batch.confirm_restored) desired.restored_at.reset();
    for (auto const& [address, identity] : batch.save_identities)
        desired.identities[address] = identity;
    for (auto const& address : batch.erase_identities) desired.identities.erase(address);
}

Result<std::unique_ptr<Control>> Control::start(Store store, Clock const& clock) {
    VFMGR_TRY(DesiredState desired, store.load());
    VFMGR_TRY(auto const unfinished, store.unfinished());
    std::unique_ptr<State> state(new State(std::move(store), std::move(desired), clock));
    state->recorder_ = Recorder(unfinished, state->desired_);
    VFMGR_CHECK(state->load_tokens());
    VFMGR_TRY(state->last_event_, state->store.last_event());
    VFMGR_TRY(state->last_revision_, state->store.last_revision());
    for (auto const& [pci, pf] : state->desired_.pfs)
        state->last_revision_ = std::max(state->last_revision_, pf.revision);
    for (auto const& [name, network] : state->desired_.networks)
        state->last_revision_ = std::max(state->last_revision_, network.revision);
    for (auto const& [name, pool] : state->desired_.pools)
        state->last_revision_ = std::max(state->last_revision_, pool.revision);
    for (auto const& [name, tenant] : state->desired_.tenants)
        state->last_revision_ = std::max(state->last_revision_, tenant.revision);
    state->last_revision_ = std::max(state->last_revision_, state->desired_.handed_out.revision);
    for (auto const& [name, link] : state->desired_.rdma_links)
        state->last_revision_ = std::max(state->last_revision_, link.revision);
    return std::unique_ptr<Control>(new Control(std::move(state), clock));
}

Control::Control(std::unique_ptr<State> state, Clock const& clock)
    : clock_(clock), state_(std::move(state)) {
    published_.host = std::make_shared<HostView const>();
    static_cast<void>(publish_changes());
    thread_ = std::thread([this] { run(); });
}

Control::~Control() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void Control::post(std::function<void(State&)> task, std::function<void()> published) {
    {
        std::lock_guard const lock(mutex_);
        tasks_.push_back({std::move(task), std::move(published)});
    }
    wake_.notify_all();
}

Result<void> Control::offer(std::string const& client, std::function<void(State&)> task,
                            std::function<void()> published) {
    bool taken = false;
    {
        std::lock_guard const lock(mutex_);
        taken = offered_.offer(client, {std::move(task), std::move(published)});
    }
    if (!taken)
        return fail(
            discreetly({Problem::unavailable,
                        fmt::format("too many requests from {} are already waiting", client),
                        "wait for their answers before the next request"}));
    wake_.notify_all();
    return {};
}

void Control::finish_offers() {
    for (bool more = true; more;) {
        {
            std::lock_guard const lock(mutex_);
            more = !offered_.empty();
        }
        wait([](State&) { return true; });  // a turn
    }
}

// What is ready by a task of the same turn is answered when readers can read it.
void Control::watch(Deadline deadline, std::function<bool(State&, Watch)> ready) {
    post([](State&) {},
         [this, watcher = Watcher{deadline, std::move(ready)}] { add_watcher(watcher); });
}

void Control::expire_watches() {
    post([this](State&) { expiring_ = true; });
}

Result<void> Control::watch(Client client, Deadline deadline,
                            std::function<bool(State&, Watch)> ready) {
    auto const name = client.name;
    return offer(
        name, [](State&) {},
        [this, watcher = Watcher{deadline, std::move(ready), std::move(client)}] {
            add_watcher(watcher);
        });
}

bool Control::has_gone(Watcher const& watcher) {
    return watcher.client.gone && *watcher.client.gone;
}

void Control::add_watcher(Watcher watcher) {
    if (watcher.ready(*state_, Watch::again)) return;
    auto const others = std::ranges::count_if(watchers_, [&](Watcher const& other) {
        return other.client.name == watcher.client.name && !has_gone(other);
    });
    bool const own = watcher.client.name.empty();
    if (own || static_cast<std::size_t>(others) < watchers_each_max)
        watchers_.push_back(std::move(watcher));
    else
        watcher.ready(*state_, Watch::crowded);
}

void Control::on_change(std::function<void()> changed) {
    // Waits, so the replaced function no longer runs when this returns.
    wait([&](State&) { return (changed_ = std::move(changed), true); });
}

void Control::on_bug(std::function<void(std::string const& what)> report) {
    wait([&](State&) { return (bug_ = std::move(report), true); });
}

void Control::report_bug(std::string what) {
    post([this, what = std::move(what)](State&) { bug_(what); });
}

bool Control::guarded(std::function<void()> const& work) const {
    auto const what = exception_of(work);
    if (what) bug_(*what);
    return !what;
}

Snapshot Control::snapshot() const {
    std::lock_guard const lock(mutex_);
    return published_;
}

namespace {

// A time after now comes from before the clock was set back.
bool is_newer(Time known, Time observed, Time now) {
    return known > observed && known <= now;
}

void mark_stale(PfState& known, PfState const& observed) {
    known.stale = true;
    known.stale_reason = observed.stale_reason;
    known.stuck = observed.stuck;
    known.pci_busy = observed.pci_busy;
}

void mark_stale(HostNetworkView& known, HostNetworkView const& observed) {
    known.stale = true;
    known.stale_reason = observed.stale_reason;
}

// A failed read is news, even if its values are older than the known ones.
template <class Part>
void replace(Part& known, Part const& observed, Time now) {
    if (!is_newer(known.observed_at, observed.observed_at, now))
        known = observed;
    else if (observed.stale)
        mark_stale(known, observed);
}

}  // namespace

void Control::publish(KernelView const& observed, KernelScope const& scope,
                      ObservationTime const& when) {
    std::lock_guard const lock(mutex_);
    auto view = std::make_shared<HostView>(*published_.host);
    view->kernel.complete = view->kernel.complete || observed.complete;
    auto& pfs = view->kernel.pfs;
    std::erase_if(pfs, [&](auto const& entry) {
        auto const& [pci, pf] = entry;
        bool const in_scope = !scope || *scope == KernelSubject(pci);
        return in_scope && !observed.pfs.contains(pci) &&
               !is_newer(pf.observed_at, when.began, when.ended);
    });
    for (auto const& [pci, pf] : observed.pfs) {
        if (auto const known = pfs.find(pci); known != pfs.end()) {
            replace(known->second, pf, when.ended);
        } else if (!is_newer(all_pfs_at_, when.began, when.ended)) {
            pfs.emplace(pci, pf);
        }
    }
    if (!scope && !is_newer(all_pfs_at_, when.began, when.ended)) all_pfs_at_ = when.began;
    if (!is_newer(routes_at_, when.began, when.ended)) {
        view->kernel.routes = observed.routes;
        routes_at_ = when.began;
    }
    auto& network = view->kernel.network;
    if (observed.network && network) replace(*network, *observed.network, when.ended);
    if (!network) network = observed.network;
    if (observed.places) view->kernel.places = observed.places;
    published_.host = std::move(view);
    host_changed_ = true;
}

void Control::publish(HypervisorView const& observed, HypervisorScope const& scope, Time now) {
    std::lock_guard const lock(mutex_);
    auto view = std::make_shared<HostView>(*published_.host);
    auto& known = view->hypervisor;
    if (is_newer(known.observed_at, observed.observed_at, now)) return;
    if (!scope) {
        auto all = observed;
        std::erase_if(vms_at_, [&](auto const& entry) {
            auto const& [uuid, at] = entry;
            if (!is_newer(at, observed.observed_at, now)) return true;
            all.vms.erase(uuid);
            if (auto const vm = known.vms.find(uuid); vm != known.vms.end()) all.vms.insert(*vm);
            return false;
        });
        known = std::move(all);
    } else if (auto& at = vms_at_[*scope]; !is_newer(at, observed.observed_at, now)) {
        at = observed.observed_at;
        known.vms.erase(*scope);
        for (auto const& [uuid, vm] : observed.vms) known.vms[uuid] = vm;
        known.vfio_variants = observed.vfio_variants;
    }
    published_.host = std::move(view);
    host_changed_ = true;
}

void Control::record_host() {
    post([this](State&) { records_host_ = true; });
}

// A view that is published meanwhile is recorded in the next turn.
void Control::record_changes() {
    auto host = snapshot().host;
    if (!records_host_ || host == recorded_) return;
    state_->record_changes(*host);
    recorded_ = std::move(host);
}

bool Control::publish_changes() {
    bool const changed = std::exchange(state_->changed_, false);
    std::shared_ptr<DesiredState const> desired;
    std::shared_ptr<std::map<std::string, PendingRun> const> runs;
    if (changed) {
        desired = std::make_shared<DesiredState const>(state_->desired_);
        runs = std::make_shared<std::map<std::string, PendingRun> const>(state_->runs_);
    }
    std::lock_guard const lock(mutex_);
    if (changed) {
        published_.desired = std::move(desired);
        published_.runs = std::move(runs);
        published_.tokens = state_->tokens_;
    }
    // Nobody waits for this, so it wakes nobody.
    published_.store_refuses = state_->store.refusal().has_value();
    return std::exchange(host_changed_, false) || changed;
}

Deadline Control::next_deadline() const {
    auto next = Deadline::max();
    for (auto const& watcher : watchers_) next = std::min(next, watcher.deadline);
    return next;
}

void Control::ask_watchers(Deadline now, bool changed) {
    std::erase_if(watchers_, [&](Watcher& watcher) {
        if (has_gone(watcher)) return true;
        bool const expired = expiring_ || watcher.deadline <= now;
        if (!expired && !changed) return false;
        bool ready = false;
        bool const asked = guarded(
            [&] { ready = watcher.ready(*state_, expired ? Watch::expired : Watch::again); });
        return ready || expired || !asked;
    });
}

void Control::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        auto const something = [this] {
            return stopping_ || !tasks_.empty() || !offered_.empty() || state_->changed_;
        };
        // wait_until(max) overflows in libstdc++ 12, so no deadline is a plain wait.
        if (auto const next = next_deadline(); next == Deadline::max())
            wake_.wait(lock, something);
        else
            wake_.wait_until(lock, next, something);
        if (stopping_ && tasks_.empty() && offered_.empty()) return;
        auto tasks = std::move(tasks_);
        tasks_.clear();
        std::ranges::move(offered_.take(), std::back_inserter(tasks));
        lock.unlock();
        guarded([&] { record_changes(); });  // before the drift that tasks find in them
        for (auto& task : tasks) guarded([&] { task.run(*state_); });
        bool changed = false;
        guarded([&] { changed = publish_changes(); });
        guarded([&] { state_->emit_events(); });
        for (auto& task : tasks) guarded(task.published);
        ask_watchers(clock_.steady_now(), changed);
        if (changed && changed_) guarded(changed_);
        tasks.clear();
        lock.lock();
    }
}

}  // namespace vfmgr
