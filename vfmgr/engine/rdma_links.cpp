// SPDX-License-Identifier: Apache-2.0
// RDMA links that were asked for by name: made, deleted, and made again when they went with their
// netdev and it is back.
#include "vfmgr/plan/rdma_links.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/engine.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

// A link that can't be made although nothing speaks against it: nobody wants to read of it every
// few seconds.
constexpr auto retry_after = 10min;

// The netdev may be a PF's, whose leases make links of their own on it.
std::vector<std::string> keys(HostView const& host, std::string const& name,
                              std::string const& netdev) {
    std::vector<std::string> all{"rdma link " + name, "netdev " + netdev};
    for (auto const& [pci, pf] : host.kernel.pfs)
        if (pf.info.ifname == netdev) all.push_back("pf " + to_string(pci));
    return all;
}

Error with_residue(Failure const& failure) {
    auto error = failure.error;
    if (!failure.residue.empty())
        error.detail += fmt::format("; left behind: {}", fmt::join(failure.residue, "; "));
    return error;
}

}  // namespace

Result<void> Engine::do_link_plan(Operation& operation, Plan const& plan) {
    operation.state = OperationState::running;
    operation.steps = planned_steps(plan);
    auto const done = execute(seams_, operation, plan, OnFailure::undo);
    if (!done) return fail(with_residue(done.error()));
    return {};
}

void Engine::add_link(Operation& operation, SoftRdmaLink const& link) {
    auto const claim = claims_.take(keys(*control_->snapshot().host, link.name, link.netdev));
    auto const host = observe_for(seams_, HostNetwork{});
    if (!host) return finish(operation, fail(host.error()), {});
    auto const plan = plan_rdma_link(*host, *control_->snapshot().desired, trusted_netdevs_, link);
    if (!plan) return finish(operation, fail(plan.error()), {});
    if (auto const done = do_link_plan(operation, *plan); !done)
        return finish(operation, fail(done.error()), {});
    Batch batch;
    batch.save_rdma_links.push_back({link, 1});
    finish(operation, {}, std::move(batch));
}

void Engine::remove_link(Operation& operation, RdmaLinkRemoval const& what) {
    auto const before = control_->snapshot();
    auto const known = before.desired->rdma_links.find(what.name);
    auto const netdev = known == before.desired->rdma_links.end() ? "" : known->second.link.netdev;
    auto const claim = claims_.take(keys(*before.host, what.name, netdev));
    auto const host = observe_for(seams_, HostNetwork{});
    if (!host) return finish(operation, fail(host.error()), {});
    auto const plan = plan_rdma_link_removal(*host, *control_->snapshot().desired, what);
    if (!plan) return finish(operation, fail(plan.error()), {});
    if (auto const done = do_link_plan(operation, *plan); !done)
        return finish(operation, fail(done.error()), {});
    Batch batch;
    batch.erase_rdma_links.push_back(what.name);
    finish(operation, {}, std::move(batch));
}

// Planned once more under the claims: a deletion may have been ahead in the queue.
void Engine::restore_link(Operation& operation, SoftRdmaLink const& link) {
    auto const claim = claims_.take(keys(*control_->snapshot().host, link.name, link.netdev));
    auto const host = observe_for(seams_, HostNetwork{});
    Result<void> outcome;
    if (!host) outcome = fail(host.error());
    auto const desired = control_->snapshot().desired;
    auto const now = desired->rdma_links.find(link.name);
    if (host && now != desired->rdma_links.end() && now->second.link == link)
        outcome = do_link_plan(
            operation, plan_rdma_link_restore(*host->kernel.network, trusted_netdevs_, link));
    finish(operation, outcome, {});
    control_->post([this, name = link.name, failed = !outcome](Control::State&) {
        auto& repair = link_repairs_[name];
        repair.going_on = false;
        if (failed) repair.not_before = clock_.steady_now() + retry_after;
    });
}

void Engine::repair_links(Control::State& state) {
    if (stopping_) return;
    auto const host = control_->snapshot().host;
    if (!host->kernel.network) return;
    auto const& wanted = state.desired().rdma_links;
    std::erase_if(link_repairs_, [&](auto const& repair) {
        return !wanted.contains(repair.first) && !repair.second.going_on;
    });
    for (auto const& [name, desired] : wanted) {
        auto const plan =
            plan_rdma_link_restore(*host->kernel.network, trusted_netdevs_, desired.link);
        auto& repair = link_repairs_[name];
        // What spoke against it may have been of a netdev that went.
        if (plan.steps.empty()) repair.not_before = {};
        if (plan.steps.empty() || repair.going_on || clock_.steady_now() < repair.not_before)
            continue;
        Operation operation;
        operation.id = random_id(16);
        operation.kind = OperationKind::restore;
        operation.subject = "/v1/rdma-links/" + name;
        operation.requested_by = "daemon";
        operation.created_at = clock_.now();
        operation.steps = planned_steps(plan);
        // Too many operations, or a store that can't be written: after the next look again.
        repair.going_on =
            accept(state, std::move(operation), Intent{},
                   [this, link = desired.link](Operation& running) { restore_link(running, link); })
                .has_value();
    }
}

}  // namespace vfmgr
