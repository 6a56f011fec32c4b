// SPDX-License-Identifier: Apache-2.0
// RDMA links that were requested by name: created, deleted, and created again when they went with
// their netdev and it is back.
#include "vfmgr/plan/rdma_links.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/engine/engine.hpp"
#include "vfmgr/engine/revision.hpp"

namespace vfmgr {
namespace {

// The netdev may be a PF's, on which attachments make links of their own.
std::vector<std::string> keys(HostView const& host, std::string const& name,
                              std::string const& netdev) {
    std::vector<std::string> all{"rdma link " + name, "netdev " + netdev};
    for (auto const& [pci, pf] : host.kernel.pfs)
        if (pf.info.ifname == netdev) all.push_back("pf " + to_string(pci));
    return all;
}

}  // namespace

std::uint64_t Engine::next_revision() {
    return control_->wait([](Control::State& state) { return state.next_revision(); });
}

void Engine::add_link(Operation& operation, SoftRdmaLink const& link,
                      std::optional<std::uint64_t> if_match) {
    auto const claim = claims_.take(keys(*control_->snapshot().host, link.name, link.ifname));
    if (auto const same = check_revision(*control_->snapshot().desired, link.name, if_match); !same)
        return finish(operation, fail(same.error()), {});
    auto const host = observe_for(seams_, HostNetwork{});
    if (!host) return finish(operation, fail(host.error()), {});
    auto const plan = plan_rdma_link(*host, *control_->snapshot().desired, trusted_netdevs_, link);
    if (!plan) return finish(operation, fail(plan.error()), {});
    if (auto const done = do_plan(operation, *plan, OnFailure::undo); !done)
        return finish(operation, fail(done.error()), {});
    Batch batch;
    batch.save_rdma_links.push_back({link, next_revision()});
    finish(operation, {}, std::move(batch));
}

void Engine::remove_link(Operation& operation, RdmaLinkRemoval const& what,
                         std::optional<std::uint64_t> if_match) {
    auto const before = control_->snapshot();
    auto const known = before.desired->rdma_links.find(what.name);
    auto const netdev = known == before.desired->rdma_links.end() ? "" : known->second.link.ifname;
    auto const claim = claims_.take(keys(*before.host, what.name, netdev));
    if (auto const same = check_revision(*control_->snapshot().desired, what.name, if_match); !same)
        return finish(operation, fail(same.error()), {});
    auto const host = observe_for(seams_, HostNetwork{});
    if (!host) return finish(operation, fail(host.error()), {});
    auto const plan = plan_rdma_link_removal(*host, *control_->snapshot().desired, what);
    if (!plan) return finish(operation, fail(plan.error()), {});
    if (auto const done = do_plan(operation, *plan, OnFailure::undo); !done)
        return finish(operation, fail(done.error()), {});
    Batch batch;
    batch.erase_rdma_links.push_back(what.name);
    finish(operation, {}, std::move(batch));
}

void Engine::repair_links(Control::State& state) {
    if (stopping_) return;
    auto const host = control_->snapshot().host;
    if (!host->kernel.network) return;
    for (auto const& [name, desired] : state.desired().rdma_links) {
        auto plan = [this, link = desired.link](HostView const& observed,
                                                DesiredState const& now) -> Result<Plan> {
            auto const desired_link = now.rdma_links.find(link.name);
            if (desired_link == now.rdma_links.end() || desired_link->second.link != link)
                return Plan{};
            return plan_rdma_link_restore(*observed.kernel.network, trusted_netdevs_, link);
        };
        begin_repair(state, *host,
                     {"/v1/rdma-links/" + name, HostNetwork{},
                      keys(*host, name, desired.link.ifname), std::move(plan), OnFailure::undo});
    }
}

}  // namespace vfmgr
